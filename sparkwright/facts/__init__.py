"""pyinfra facts about a host. The facts are typed views of the answer to one batched query.

``pyinfra HOST fact sparkwright.facts.HostObservation`` prints all facts as JSON; ``pyinfra HOST
fact sparkwright.facts.NvidiaDriver`` prints one fact.
"""

from sparkwright.facts.observation import HostObservation as HostObservation
from sparkwright.facts.observation import observed as observed
from sparkwright.facts.views import ContainerToolkit as ContainerToolkit
from sparkwright.facts.views import Disks as Disks
from sparkwright.facts.views import Docker as Docker
from sparkwright.facts.views import Fabric as Fabric
from sparkwright.facts.views import Gpus as Gpus
from sparkwright.facts.views import HostMemorySize as HostMemorySize
from sparkwright.facts.views import LockHolder as LockHolder
from sparkwright.facts.views import NvidiaDriver as NvidiaDriver
