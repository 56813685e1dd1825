// Heads in an order, and heads that fit a filter.

/** Every head of the recording: { call, head }. */
export function allHeads(recording) {
  return recording.calls.flatMap((call) => call.heads.map((_, head) => ({ call, head })));
}

/**
 * Sorted by a statistic, by layer ("layer"), or as recorded (""); heads without a value come last either way.
 * @param {{ call: any, head: number }[]} heads
 * @param {string} name
 * @param {boolean} descending
 */
export function sortHeads(heads, name, descending) {
  if (name === "") return heads;
  const way = descending ? -1 : 1;
  if (name === "role") return rolesInOrder(heads, way);
  const value = ({ call, head }) => (name === "layer" ? call.layer + head / 1e4 : call.statistic(name)[head]);
  return heads
    .map((one) => [value(one), one])
    .sort(([a], [b]) => (Number.isNaN(a) ? 1 : 0) - (Number.isNaN(b) ? 1 : 0) || way * (a - b) || 0)
    .map(([, one]) => one);
}

/**
 * Heads of a kind whose description has every word of the filter; "3.5" is layer 3, head 5.
 * @param {{ call: any, head: number }[]} heads
 * @param {string} text
 * @param {string} kind "" for every kind
 * @param {(head: { call: any, head: number }) => string} describe
 */
export function filterHeads(heads, text, kind, describe) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return heads.filter((one) => {
    if (kind && one.call.kind !== kind) return false;
    const described = describe(one).toLowerCase();
    return words.every((word) => described.includes(word));
  });
}

/** The role that says least: heads without a preference. */
const LEAST_TELLING = "broad";

/**
 * Roles in order of their heads, the one with the most first (−1) or last; the one that says least comes after all others.
 * @template {{ role: string, count: number }} Role
 * @param {Role[]} roles
 * @param {number} way
 * @returns {Role[]}
 */
export function orderRoles(roles, way = -1) {
  const last = ({ role }) => (role === LEAST_TELLING ? 1 : 0);
  return [...roles].sort((a, b) => last(a) - last(b) || way * (a.count - b.count));
}

/**
 * Heads by role, in each role the clearest head first; heads without a role last.
 * @param {{ call: any, head: number }[]} heads
 * @param {number} way −1: the role with the most heads first
 */
function rolesInOrder(heads, way) {
  const groups = new Map();
  for (const one of heads) {
    const role = one.call.roles[one.head]?.role ?? null;
    groups.set(role, [...(groups.get(role) ?? []), one]);
  }
  const rest = groups.get(null) ?? [];
  groups.delete(null);
  const score = ({ call, head }) => call.roles[head].score;
  const counted = [...groups].map(([role, group]) => ({ role, group, count: group.length }));
  const ordered = orderRoles(counted, way).flatMap(({ group }) => group.sort((a, b) => score(b) - score(a)));
  return [...ordered, ...rest];
}
