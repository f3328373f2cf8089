"""From what a replay showed to what it was worth: rewards, resampled logs, and the estimators with weights."""
