"""The hub of the lab: a fake for huggingface.co with miniature repositories."""
