"""Programs that make what the package ships, and measure its source; outside the package."""
