"""How a page looks: on light and dark screens, on narrow ones, and on paper."""

from __future__ import annotations

# Contrast of words with the page: 4.5 or more, in light and dark.
STYLE = """
:root{color-scheme:light dark;--page:#fff;--words:#1d2126;--quiet:#565d66;--line:#d9dde2;--box:#f4f6f8;
--green:#14703a;--yellow:#8a5300;--red:#b3261e;--cyan:#0b6a86}
@media (prefers-color-scheme:dark){:root{--page:#14171a;--words:#e6e8ea;--quiet:#a7aeb6;--line:#3a4047;--box:#1d2226;
--green:#5fcf8d;--yellow:#e5ab4f;--red:#ff8a80;--cyan:#62c6e4}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--words);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
main,header,footer{max-width:70rem;margin:0 auto;padding:0 1.25rem}
h1{font-size:1.6rem;line-height:1.25;margin:1.5rem 0 .25rem}
h2{font-size:1.3rem;line-height:1.3;margin:2.5rem 0 .5rem;padding-top:1rem;border-top:1px solid var(--line)}
h3{font-size:1.02rem;margin:1.4rem 0 .3rem}
p,ul{margin:.35rem 0;max-width:48rem}
ul{padding-left:1.2rem}
a{color:var(--cyan)}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem}
summary{cursor:pointer;font-weight:600;margin:1rem 0 .2rem}
.wide,figure{overflow-x:auto;margin:.5rem 0}
figure svg{width:100%;min-width:34rem;max-width:48rem;height:auto;display:block}
table{border-collapse:collapse;font-size:.93rem}
caption{text-align:left;font-weight:600}
th,td{padding:.2rem .9rem .2rem 0;text-align:left;vertical-align:top;font-weight:normal;overflow-wrap:normal}
thead th{border-bottom:1px solid var(--line);white-space:nowrap}
@media (max-width:40rem){tbody th:not(.number){min-width:9rem}}
.number{text-align:right;white-space:nowrap}
.whole{white-space:nowrap}
.quiet,footer{color:var(--quiet);font-size:.9rem}
code{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
footer{margin-top:3rem;padding-bottom:2rem}
@media print{:root{color-scheme:light;--page:#fff;--words:#000;--quiet:#444;--line:#bbb;--box:#fff}
@page{margin:1.5cm}
body{font-size:10.5pt}main,header,footer{max-width:none;padding:0}
.wide,figure{overflow:visible}figure svg{width:auto;min-width:0;max-width:100%;max-height:23cm}
table{font-size:9pt}h1{font-size:17pt}h2{font-size:13pt;margin-top:1.4rem}th,td{padding:.1rem .6rem .1rem 0}
main>section+section{break-before:page}
main>section+section>h2{margin-top:0;border-top:0}
figure,tr{break-inside:avoid}h2,h3,summary{break-after:avoid}
details::details-content{content-visibility:visible;display:block;block-size:auto}}
"""
