"""Files that people and other programs wrote: opened without waiting for anybody, read no further than they may be."""
