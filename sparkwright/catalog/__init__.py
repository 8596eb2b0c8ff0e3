"""The catalog: images, models, recipes, measurements and advice, as the cards publish them."""

from sparkwright.catalog.containers import Exceptions as Exceptions
from sparkwright.catalog.containers import refuse_privileged as refuse_privileged
from sparkwright.catalog.data import ArgumentValue as ArgumentValue
from sparkwright.catalog.data import Scalar as Scalar
from sparkwright.catalog.entries import Alias as Alias
from sparkwright.catalog.entries import Image as Image
from sparkwright.catalog.entries import Model as Model
from sparkwright.catalog.entries import Mounted as Mounted
from sparkwright.catalog.entries import Needs as Needs
from sparkwright.catalog.entries import Recipe as Recipe
from sparkwright.catalog.entries import Tag as Tag
from sparkwright.catalog.entries import Variables as Variables
from sparkwright.catalog.reader import Catalog as Catalog
from sparkwright.catalog.reader import load_catalog as load_catalog
