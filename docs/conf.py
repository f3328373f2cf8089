"""Settings of the site that docs/build.py builds with Sphinx."""

project = "delayed-replay"
copyright = "its authors, Apache-2.0"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "delayed-replay"
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 4
myst_fence_as_directive: list[str] = []
nitpicky = True
