"""One file per verb, and the steps that verbs share."""
