"""Making a bare host ready: which box it is, and what each step does on it."""
