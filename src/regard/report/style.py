"""The style sheet of report pages: light and dark, wide and narrow screens, and print."""

STYLE = """
:root { color-scheme: light dark; --back: #f5f6f8; --card: #fff; --ink: #1c2330; --faint: #626d80; --edge: #e2e5eb;
  --blue: #3b6ea8; --red: #c44e3b; --green: #3f7d52; --amber: #a8700f; --track: #eaedf2; --code: #f0f2f6;
  --onblue: #fff; }
@media (prefers-color-scheme: dark) { :root { --back: #11141a; --card: #1a1f28; --ink: #e7eaf0; --faint: #9aa4b5;
  --edge: #2b323f; --blue: #75a5e3; --red: #ee8373; --green: #7fc295; --amber: #e2b04c; --track: #262d39;
  --code: #12161d; --onblue: #0d1117; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0; padding: 2.2rem 1rem 4rem; background: var(--back); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1080px; margin: auto; }
h1 { font-size: 1.55rem; line-height: 1.25; margin: 0 0 .3rem; overflow-wrap: anywhere; letter-spacing: -.01em; }
h2 { font-size: 1.02rem; margin: 0 0 .15rem; }
h2 + .faint { margin: 0 0 .9rem; }
p { margin: .2rem 0; }
a { color: var(--blue); }
.faint { color: var(--faint); } small, .small { font-size: .87rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .9rem 0 0; font-size: .9rem; }
nav a { text-decoration: none; } nav a:hover { text-decoration: underline; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: .8rem;
  margin: 1.3rem 0 .8rem; }
.tile, .card { background: var(--card); border: 1px solid var(--edge); border-radius: 12px; }
.tile { padding: .8rem 1rem .7rem; line-height: 1.35; }
.tile b { display: block; font-size: 1.6rem; font-weight: 650; letter-spacing: -.02em; }
.tile.main b { color: var(--blue); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: .8rem;
  margin-bottom: .8rem; align-items: stretch; }
.card { padding: 1.1rem 1.25rem 1.2rem; margin-bottom: .8rem; min-width: 0; } .grid .card { margin: 0; }
svg { display: block; width: 100%; max-width: 540px; height: auto; font-size: 13px; overflow: visible; }
svg text { fill: var(--faint); } svg text.strong { fill: var(--ink); font-weight: 600; }
svg .axis { stroke: var(--edge); } svg .diagonal { stroke: var(--faint); stroke-dasharray: 4 4; opacity: .7; }
svg .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.c0 { --c: var(--blue); } .c1 { --c: var(--red); } .c2 { --c: var(--green); } .c3 { --c: var(--faint); }
svg .line.dashed { stroke-dasharray: 6 4; } svg .band { fill: var(--c); opacity: .13; }
svg .line { stroke: var(--c); } svg .dot, svg .bar { fill: var(--c); } svg .pale { opacity: .35; }
svg .mark { stroke: var(--faint); stroke-dasharray: 2 3; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; font-size: .87rem; margin: .4rem 0 0; }
.legend i { display: inline-block; width: .75rem; height: .75rem; border-radius: 3px; background: var(--c);
  margin-right: .4rem; vertical-align: -.06rem; } .legend i.pale { opacity: .35; }
.scroll { overflow-x: auto; } .scroll table:not(.matrix) td:not(.n) { min-width: 5rem; }
.scroll table:not(.matrix) td:last-child:not(:first-child, .n, .meter) { min-width: 12rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th { font-weight: 600; color: var(--faint); font-size: .82rem; text-align: left; }
td, th { padding: .36rem .8rem .36rem 0; border-top: 1px solid var(--edge); vertical-align: top;
  overflow-wrap: anywhere; }
tr:first-child > th { border-top: 0; } tr > :last-child { padding-right: 0; }
.n { text-align: right; white-space: nowrap; } .key { white-space: nowrap; color: var(--faint); }
table.plain { width: auto; min-width: 60%; }
.scores td, .scores th { overflow-wrap: normal; }
.meter { min-width: 90px; width: 34%; } .meter svg { max-width: none; height: 22px; }
table.matrix { width: auto; border-spacing: 3px; border-collapse: separate; }
.matrix td, .matrix th { border: 0; padding: .3rem .35rem; }
.matrix td { text-align: center; min-width: 2.7rem; border-radius: 6px; white-space: nowrap;
  background: color-mix(in srgb, var(--c) calc(var(--v) * 88%), var(--track)); }
.matrix td.full { color: var(--onblue); } .matrix td.zero { color: var(--faint); background: var(--track); }
.matrix th { text-align: right; max-width: 9rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.matrix tr:first-child th { text-align: center; max-width: 4.4rem; font-weight: 500; }
.example { border-top: 1px solid var(--edge); padding: .75rem 0; }
.example:first-of-type { border-top: 0; padding-top: .2rem; }
.example:last-child { padding-bottom: 0; }
.example .head { display: flex; flex-wrap: wrap; gap: .2rem .9rem; align-items: baseline; font-size: .87rem; }
.example .text { margin: .3rem 0 0; overflow-wrap: anywhere; white-space: pre-wrap; }
.tag { display: inline-block; border-radius: 6px; padding: 0 .5rem; font-size: .84rem; font-weight: 600;
  overflow-wrap: anywhere; border: 1px solid color-mix(in srgb, var(--c) 40%, transparent);
  background: color-mix(in srgb, var(--c) 13%, transparent); color: var(--c); }
details { margin-top: .7rem; } summary { cursor: pointer; color: var(--blue); font-size: .9rem; }
details[open] > summary { margin-bottom: .5rem; }
pre { background: var(--code); border: 1px solid var(--edge); border-radius: 8px; padding: .7rem .9rem;
  margin: .5rem 0 .9rem; overflow-x: auto; font: .86rem/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
@media (max-width: 520px) { body { padding: 1.3rem .7rem 3rem; } .card { padding: .95rem .95rem 1rem; }
  .tiles { grid-template-columns: 1fr 1fr; gap: .55rem; } .tile b { font-size: 1.35rem; }
  .matrix td { min-width: 2.5rem; padding: .3rem; } .wide { display: none; } table.plain { width: 100%; } }
@media print { body { background: #fff; padding: 0; } .card, .tile { break-inside: avoid; } nav { display: none; } }
"""
