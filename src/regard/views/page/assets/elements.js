// Building the document. Strings always become text nodes, so tokens and names can never become markup.

/** make("button", { class: "tab", disabled: false, on: { click } }, "text", child): an element. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Text that comes from the recording (tokens, names, numbers, formulas): never translated, with its own direction. */
export function datum(text, name = "") {
  return make("bdi", { class: name || null, translate: "no" }, text);
}

/** press("text", act, { "aria-label": … }): a button without a frame, unless its class says otherwise. */
export function press(content, act, attributes = {}) {
  return make("button", { type: "button", class: "quiet", ...attributes, on: { click: act } }, ...[content].flat());
}

/** A <select> of [value, label] pairs. */
export function choice(options, value, onChange, attributes = {}) {
  const select = make("select", { ...attributes, on: { change: () => onChange(select.value) } });
  for (const [key, label] of options) select.append(make("option", { value: key }, label));
  select.value = String(value);
  return select;
}

/** A row of buttons of which one is pressed. */
export function segments(options, value, onChange, label) {
  const buttons = options.map(([key, text]) =>
    press(text, () => onChange(key), { class: null, "aria-pressed": String(key === value) }),
  );
  return make("div", { class: "segments", role: "group", "aria-label": label }, ...buttons);
}

/** A canvas of a size in CSS pixels, sharp on dense screens; returns its context scaled to CSS pixels. */
export function fitCanvas(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  const [across, down] = [Math.max(1, Math.round(width * density)), Math.max(1, Math.round(height * density))];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** An empty canvas that is not in the document. */
export function blankCanvas(width, height) {
  return make("canvas", { width: Math.max(1, width), height: Math.max(1, height) });
}
