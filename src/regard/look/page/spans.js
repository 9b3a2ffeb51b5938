// Parts of a text by the offsets of Python, which count code points; strings of JavaScript count UTF-16 units.

export const letters = (text) => Array.from(text);
export const slice = (all, start, end) => all.slice(start, end).join("");

// The text as pieces, each plain or one of the spans; spans that overlap an earlier one are left out.
export function pieces(text, spans, longest = 6000) {
  const all = letters(text);
  const parts = [];
  let at = 0;
  for (const span of [...spans].sort((one, two) => one.start - two.start)) {
    if (span.start < at || span.end > longest) continue;
    if (span.start > at) parts.push({ text: slice(all, at, span.start) });
    parts.push({ text: slice(all, span.start, span.end), span });
    at = span.end;
  }
  if (at < all.length) parts.push({ text: slice(all, at, Math.min(all.length, longest)) + (all.length > longest ? " …" : "") });
  return parts;
}
