"""The command line. Modules here import nothing heavy at their top, so that help is instant."""

import gc

# Python looks for garbage after so many new objects, not after 700: loading modules makes a million and no garbage.
gc.set_threshold(50_000)
