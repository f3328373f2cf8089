"""Settings of the site that docs/build.py builds with Sphinx."""

project = "delayed-replay"
copyright = "its authors, Apache-2.0"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "delayed-replay"
html_static_path = ["static"]
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 4
nitpicky = True
smartquotes = False  # `--dataset` is no dash
