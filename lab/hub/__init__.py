"""The hub of the lab: a stand-in for huggingface.co with miniature repositories."""
