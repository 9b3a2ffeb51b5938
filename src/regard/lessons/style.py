"""Styles of a lesson, in addition to those of report pages."""

STYLE = """
main { max-width: 900px; }
header { margin-bottom: 1.4rem; } header h1 { font-size: 1.9rem; } header p { margin: 0; }
article { font-size: 1.03rem; line-height: 1.65; }
article h2 { font-size: 1.3rem; margin: 2.2rem 0 .5rem; } article h3 { font-size: 1.08rem; margin: 1.4rem 0 .3rem; }
article p { margin: .75rem 0; } article li { margin: .25rem 0; }
article table { width: auto; margin: .9rem 0; display: block; overflow-x: auto; }
article blockquote { border-left: 3px solid var(--edge); margin: .9rem 0; padding: 0 0 0 1rem; color: var(--faint); }
.block, details { margin: 1rem 0; }
.block pre, details pre { margin: 0; }
pre.code { background: var(--card); border-radius: 10px; font-size: .8rem; }
pre.output { background: transparent; border: 0; border-left: 3px solid var(--blue); border-radius: 0;
  color: var(--ink); padding: .15rem 0 .15rem .9rem; margin: .7rem 0 .2rem; }
pre code { overflow-wrap: normal; font: inherit; }
.picture { margin: .8rem 0; } .picture img { max-width: 100%; height: auto; display: block; mix-blend-mode: multiply; }
@media (prefers-color-scheme: dark) { .picture img { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; } }
details { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; padding: .55rem .9rem; }
details pre.code { background: var(--code); }
footer { border-top: 1px solid var(--edge); margin-top: 2.5rem; padding-top: .8rem; }
@media (max-width: 520px) { header h1 { font-size: 1.5rem; } article { font-size: 1rem; }
  pre { padding: .6rem .7rem; } }
"""
