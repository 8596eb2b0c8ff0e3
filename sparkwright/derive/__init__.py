"""A service that names a model's repository alone: everything else from what is known of it."""
