"""How often each verdict is right: "trust" with an interval that covers, "do not trust" with a large error."""
