// From the map to the views and back, at the same head and the same tokens.

/** The address of a recording's views; the page of a large recording begins with the numbers of one call. */
export function lookAddress(recording, now, view = null) {
  const parts = new URLSearchParams();
  if (view) parts.set("view", view);
  parts.set("call", now.call);
  parts.set("head", now.head);
  if (view === "lines") parts.set("heads", now.head);
  for (const name of ["query", "key"]) if (now[name] !== null && now[name] !== undefined) parts.set(name, now[name]);
  const query = recording.whole ? "" : `?call=${now.call}`;
  return `/look/${encodeURIComponent(recording.id)}${query}#${parts}`;
}

/** The address of the map from that of a page: the same head, the same tokens. */
export function mapAddress(id, { search, hash }) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const parts = new URLSearchParams();
  parts.set("call", said.get("call") ?? new URLSearchParams(search).get("call") ?? "0");
  for (const name of ["head", "query", "key", "sinks"]) if (said.has(name)) parts.set(name, said.get(name));
  return `/map/${encodeURIComponent(id)}#${parts}`;
}
