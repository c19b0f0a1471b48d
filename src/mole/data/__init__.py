"""Data in and out: sources that the provider has, and the Parquet shards of a delivery."""
