"""What a query asks: dates, intent and routing."""
