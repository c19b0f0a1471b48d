"""The audit: attacks a delivery, compares what they find with the truth, and writes it down."""
