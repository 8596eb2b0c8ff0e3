"""Smoke tests on the controller's side: requests made from the plan, and results."""
