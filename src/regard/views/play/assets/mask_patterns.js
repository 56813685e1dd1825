// The patterns of the mask language: their arguments, their checks and their errors.

import {
  ConstantMask,
  combineMasks,
  DenseMask,
  DocumentsMask,
  EveryMask,
  LengthsMask,
  NeighbourhoodMask,
  PaddingMask,
  SpanMask,
  WindowMask,
} from "./mask_nodes.js";
import { MaskProblem } from "./mask_problem.js";
import { broadcastShapes, MaskTable, scalarTable, tableText } from "./mask_tables.js";
import { tupleText, valueRepr } from "./python_text.js";

/** The most queries or keys of a sequence. */
const LONGEST = 2 ** 30;
const MOST_GRID_AXES = 8;
const SHOWN = 60;

const isWhole = (value, least, most = Infinity) =>
  (typeof value === "number" || typeof value === "bigint") && value >= least && value <= most;

function wholeNumber(name, given, least, most = null) {
  if (isWhole(given, least, most ?? Infinity)) return given > LONGEST ? LONGEST : Number(given);
  throw new MaskProblem(
    most === null
      ? "{name} must be a whole number, {least} or more."
      : "{name} must be a whole number from {least} to {most:,}.",
    {
      got: "{name} = {given}",
      advice: least === 1 && most === null ? "Pass a positive integer." : "Pass an integer in range.",
      name,
      least,
      most,
      given: valueRepr(given).slice(0, SHOWN),
    },
  );
}

function windowOf(before, after) {
  const [first, last] = [
    ["before", before],
    ["after", after],
  ].map(([name, reach]) => {
    const limit = reach === null ? null : wholeNumber(name, reach, 0);
    return limit === null || limit >= LONGEST ? null : limit;
  });
  return first === null && last === null ? new ConstantMask(true) : new WindowMask(first, last);
}

function spanOf(start, stop) {
  const [first, last] = [wholeNumber("start", start, 0), wholeNumber("stop", stop, 0)];
  if (first > last) {
    throw new MaskProblem("In span(start, stop), stop must be at least start (start = {start}).", {
      got: "stop = {stop}",
      advice: "Give the first position, and the position after the last one.",
      start: first,
      stop: last,
    });
  }
  return new SpanMask(first, last);
}

function localGlobal(given) {
  const stride = wholeNumber("stride", given, 1);
  return combineMasks("|", [windowOf(stride, stride), new EveryMask(stride), new EveryMask(stride, true)]);
}

// ---- tables --------------------------------------------------------------------------------------

const asTable = (given) => (given instanceof MaskTable ? given : scalarTable(given));

/** The beginning of a table for an error. */
function beginning(table) {
  if (table.size <= 64) return tableText(table);
  const flat = new MaskTable(table.dtype, [64], table.values.slice(0, 64));
  return `${tableText(flat).replace(/\]+$/, "")}, …]`;
}

const isBits = (table) => table.values.every((value) => value === 0 || value === 1);

/** A table of truth values, from truth values or from 0 and 1. */
function truthTable(given) {
  const table = asTable(given);
  if (table.dtype === "bool" || (table.dtype === "int64" && isBits(table)) || table.dtype === "float64")
    return table.truths();
  throw new MaskProblem("A mask table must hold bools, 0 and 1, or 0 and −inf.", {
    got: "{dtype}",
    advice: "Convert it with .bool().",
    dtype: table.dtype,
  });
}

/** A table with an axis of size 1 for the heads, after its leading axes. */
function withHead(table, own) {
  const lead = table.axes - own;
  return lead ? table.shaped([...table.shape.slice(0, lead), 1, ...table.shape.slice(lead)]) : table;
}

function paddingOf(keep, lengths) {
  if ((keep === null) === (lengths === null)) {
    throw new MaskProblem("padding needs either keep or lengths=, not both.", {
      advice: "padding(keep) or padding(lengths=[…]).",
    });
  }
  if (lengths !== null) return lengthsOf(asTable(lengths));
  const table = asTable(keep);
  if (table.dtype === "int64" && table.axes === 1) {
    if (table.size && !isBits(table)) return lengthsOf(table);
    throw new MaskProblem("A list of 0 and 1 could be truth values or lengths.", {
      got: "padding({beginning})",
      advice: "Write padding([True, …]) or padding(lengths=[…]).",
      beginning: beginning(table),
    });
  }
  const truths = truthTable(table);
  if (!truths.axes) {
    throw new MaskProblem("padding(keep) must have shape (batch, keys) or (keys,).", {
      got: "a single value",
      advice: "Pass one value per key.",
    });
  }
  return new PaddingMask(withHead(truths, 1));
}

function lengthsOf(table) {
  if (table.size && (table.dtype !== "int64" || table.values.some((value) => value < 0))) {
    throw new MaskProblem("Lengths must be 64-bit whole numbers, 0 or more.", {
      got: "{beginning}",
      advice: "Pass the number of real tokens of each sequence.",
      beginning: beginning(table),
    });
  }
  const clipped = table.values.map((value) => (value > LONGEST ? LONGEST : Number(value)));
  if (!table.axes) return new SpanMask(0, clipped[0]);
  return new LengthsMask(withHead(new MaskTable("int64", table.shape, clipped), 0));
}

function documentIds(given) {
  const table = asTable(given);
  if ((table.size && table.dtype !== "int64") || !table.axes) {
    throw new MaskProblem("Document ids must be 64-bit whole numbers, one per position.", {
      got: "{dtype} of shape {shape}",
      advice: "Pass a list or an integer tensor.",
      dtype: table.dtype,
      shape: tupleText(table.shape),
    });
  }
  return withHead(new MaskTable("int64", table.shape, table.values), 1);
}

function documentsOf(ids, keyIds) {
  const queries = documentIds(ids);
  const keys = keyIds === null ? queries : documentIds(keyIds);
  const leads = [queries, keys].map((table) => table.shape.slice(0, -1));
  if (broadcastShapes(leads[0], leads[1]) === null) {
    throw new MaskProblem("The tables of documents(query_ids, key_ids) must have the same batch size.", {
      got: "{queries} and {keys}",
      advice: "Give both the same batch size.",
      queries: tupleText(leads[0].slice(0, -1)),
      keys: tupleText(leads[1].slice(0, -1)),
    });
  }
  return new DocumentsMask(queries, keys);
}

// ---- grids ---------------------------------------------------------------------------------------

const axesOf = (given) => (given instanceof MaskTable ? given.axes : 0);

function gridNumbers(name, given, least) {
  if (!Array.isArray(given) && axesOf(given) !== 1) {
    throw new MaskProblem("In neighbourhood(shape, radius), {name} must be a list of whole numbers.", {
      got: "{given!r}",
      advice: "Write neighbourhood((64, 64), 6), for example.",
      name,
      given,
    });
  }
  const values = Array.isArray(given) ? given : given.values;
  return values.map((value) => wholeNumber(name, value, least, LONGEST));
}

function neighbourhoodOf(shape, radius, shifted) {
  const sizes = gridNumbers("shape", shape, 1);
  const reaches = gridNumbers("radius", axesOf(radius) ? radius : sizes.map(() => radius), 0);
  const points = sizes.reduce((one, other) => one * BigInt(other), 1n);
  if (points > BigInt(LONGEST)) {
    throw new MaskProblem("The grid of neighbourhood(shape, radius) must have at most {most:,} points.", {
      got: "{points:,}",
      advice: "Give the height and width in patches.",
      most: LONGEST,
      points,
    });
  }
  if (reaches.length !== sizes.length || sizes.length < 1 || sizes.length > MOST_GRID_AXES) {
    throw new MaskProblem(
      "neighbourhood(shape, radius) must have 1 to {most} axes, and one radius for all or for each.",
      {
        got: "shape {shape} and radius {radius}",
        advice: "Write neighbourhood((64, 64), 6), for example.",
        most: MOST_GRID_AXES,
        shape: `[${sizes.join(", ")}]`,
        radius: `[${reaches.join(", ")}]`,
      },
    );
  }
  if (axesOf(shifted)) {
    throw new MaskProblem("In neighbourhood(shape, radius, shifted), shifted must be True or False.", {
      got: "shifted = {given}",
      advice: "Omit it for neighbourhoods that are cut off at the border.",
      given: valueRepr(shifted).slice(0, SHOWN),
    });
  }
  return new NeighbourhoodMask(
    sizes,
    reaches.map((reach, axis) => Math.min(reach, sizes[axis] - 1)),
    Boolean(shifted),
  );
}

/** Every pattern: the names of its arguments, those without a default, those by name only, and how it is made. */
export const MASK_PATTERNS = {
  causal: { make: () => new WindowMask(null, 0) },
  window: { needed: ["before", "after"], make: windowOf },
  padding: { optional: { keep: null }, named: { lengths: null }, make: paddingOf },
  prefix: { needed: ["length"], make: (length) => new SpanMask(0, wholeNumber("length", length, 0)) },
  span: { needed: ["start", "stop"], make: spanOf },
  documents: { needed: ["ids"], optional: { key_ids: null }, make: documentsOf },
  every: { needed: ["stride"], make: (stride) => new EveryMask(wholeNumber("stride", stride, 1)) },
  local_global: { needed: ["stride"], make: localGlobal },
  neighbourhood: { needed: ["shape", "radius"], named: { shifted: false }, make: neighbourhoodOf },
  dense: { needed: ["table"], make: (table) => new DenseMask(truthTable(table)) },
  everything: { make: () => new ConstantMask(true) },
  nothing: { make: () => new ConstantMask(false) },
};

/** The names of all arguments of a pattern, in order. */
export function argumentsOf({ needed = [], optional = {}, named = {} }) {
  return [...needed, ...Object.keys(optional), ...Object.keys(named)];
}

/** A pattern called as Python would; null if the arguments do not fit it. */
export function callPattern(pattern, values, named) {
  const { needed = [], optional = {}, named: byName = {} } = pattern;
  const positional = [...needed, ...Object.keys(optional)];
  if (values.length > positional.length) return null;
  const given = { ...optional, ...byName };
  values.forEach((value, at) => {
    given[positional[at]] = value;
  });
  for (const [name, value] of Object.entries(named)) {
    const at = positional.indexOf(name);
    if ((at < 0 && !(name in byName)) || (at >= 0 && at < values.length)) return null;
    given[name] = value;
  }
  const all = argumentsOf(pattern);
  if (all.some((name) => !(name in given))) return null;
  return pattern.make(...all.map((name) => given[name]));
}
