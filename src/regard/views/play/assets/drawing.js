// Building SVG and MathML: like make() of elements.js, in their own namespaces.

const SVG_SPACE = "http://www.w3.org/2000/svg";
const MATH_SPACE = "http://www.w3.org/1998/Math/MathML";

function inSpace(space, tag, attributes, children) {
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** drawn("circle", { r: 3 }): an element of an SVG picture. */
export function drawn(tag, attributes = {}, ...children) {
  return inSpace(SVG_SPACE, tag, attributes, children);
}

/** Changes some attributes of an element. */
export function redraw(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

function mathElement(tag, attributes, children) {
  return inSpace(MATH_SPACE, tag, attributes, children.map(mathPart));
}

/** A string becomes a number, an operator or a name, whichever it looks like. */
function mathPart(part) {
  if (typeof part !== "string") return part;
  if (/^[−-]?[\d.,]+$/.test(part) || part === "−∞") return inSpace(MATH_SPACE, "mn", {}, [part]);
  if (/^[\p{L}][\p{L}\d]*$/u.test(part)) {
    const upright = [...part].length > 1 ? { mathvariant: "normal" } : {};
    return inSpace(MATH_SPACE, "mi", upright, [part]);
  }
  return inSpace(MATH_SPACE, "mo", {}, [part]);
}

/** formula("q", "·", sub("k", "j")): one formula, set by the browser. */
export function formula(...parts) {
  return mathElement("math", {}, [mathRow(...parts)]);
}

/** The same on a line by itself. */
export function displayed(...parts) {
  return mathElement("math", { display: "block" }, [mathRow(...parts)]);
}

export const mathRow = (...parts) => mathElement("mrow", {}, parts);
export const mathText = (text) => inSpace(MATH_SPACE, "mtext", {}, [text]);
export const mathName = (text) => inSpace(MATH_SPACE, "mi", { mathvariant: "normal" }, [text]);
/** Something in round brackets of the same height. */
export const brackets = (...parts) => mathRow("(", ...parts, ")");
/** Space between two parts of a line. */
export const mathGap = () => mathElement("mspace", { width: "1em" }, []);
/** The sign of a transposed matrix. */
export const transposed = (name) => sup(name, mathName("T"));
export const frac = (above, below) => mathElement("mfrac", {}, [above, below]);
export const root = (...parts) => mathElement("msqrt", {}, parts);
export const sub = (base, index) => mathElement("msub", {}, [base, index]);
export const sup = (base, power) => mathElement("msup", {}, [base, power]);
export const total = (index) => mathElement("munder", {}, ["∑", index]);
/** A symbol in the colour of a class. */
export const tinted = (name, ...parts) => mathElement("mrow", { class: name }, parts);
