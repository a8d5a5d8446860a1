"""Legal holds, audit verification and recall authority."""
