"""Work on many machines with Ray: the rows of a file in shards, each written once. It needs the extra `ray`."""
