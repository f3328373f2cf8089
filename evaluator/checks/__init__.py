"""Whether a log is fit for replay: what a replay rests on, tested on the very log it will read."""
