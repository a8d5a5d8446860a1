"""External stores: kept equal to the truth by its change log, and asked in a recall for what they propose."""
