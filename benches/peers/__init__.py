"""The core beside other engines of hybrid retrieval, each in a process of its own."""
