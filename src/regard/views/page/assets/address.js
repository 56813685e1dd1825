// The state in the address: #view=matrix&call=3&head=5, only what differs from the first state.

const NUMBERS = ["call", "layer", "head", "query", "key"];
const LISTS = ["heads", "zoom"];
// A change of these is a new entry in the browser's history; other changes update the current entry.
const STEPS = ["view", "call", "head"];

/** The part of the address after "#". */
function addressOf(state) {
  const { now, first } = state;
  const parts = new URLSearchParams();
  const differs = (name, from) => String(now[name]) !== String(from[name]);
  const named = Object.keys(now).filter((name) => name !== "heads" && differs(name, first));
  // A head that the address names may already say which lines are drawn.
  const implied = state.beginning(Object.fromEntries(named.map((name) => [name, now[name]])));
  for (const name of [...named, ...(differs("heads", implied) ? ["heads"] : [])]) {
    const value = now[name];
    const nothing = name === "heads" ? "all" : "none";
    parts.set(name, Array.isArray(value) ? value.map(written).join(" ") : value === null ? nothing : String(value));
  }
  return parts.toString();
}

/** What an address asks for, unchecked: the state drops what does not fit. */
export function readAddress(hash) {
  const raw = {};
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (text === "none" || (name === "heads" && text === "all")) raw[name] = null;
    else if (NUMBERS.includes(name)) raw[name] = /^\d+$/.test(text) ? Number(text) : undefined;
    else if (LISTS.includes(name)) raw[name] = text === "" ? [] : text.split(" ").map(Number);
    else if (name === "descending") raw[name] = text === "true";
    else if (name === "embed")
      raw[name] = text !== "false"; // "#embed" alone is enough
    else raw[name] = text;
  }
  return Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== undefined));
}

/** Keeps the address and the state in step, in both directions. */
export function followAddress(state) {
  let later = 0;
  const write = (how) => {
    try {
      history[how](null, "", `#${addressOf(state)}`);
    } catch {
      // A page inside a notebook does not have its own address.
    }
  };
  const read = () => state.set(state.beginning(readAddress(location.hash)), "address");
  read();
  window.addEventListener("hashchange", read);
  window.addEventListener("popstate", read);
  state.listen((_now, changed, cause) => {
    if (cause === "address") return;
    clearTimeout(later);
    const step = STEPS.some((name) => changed.has(name));
    // Browsers allow a few changes of the address each second; a drag makes many.
    if (step) write("pushState");
    else later = setTimeout(() => write("replaceState"), 250);
  });
}

function written(number) {
  return String(Math.round(number * 1000) / 1000);
}
