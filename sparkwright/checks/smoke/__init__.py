"""The smoke tests on the controller's side: requests from the plan, and results. Pure."""
