// What heads do, as found by Python: a role, how clear it is, and a pair of tokens that shows it.

import { choice, datum, make } from "./elements.js";
import { say } from "./languages.js";
import { shareText } from "./numbers.js";
import { orderRoles } from "./ranking.js";

/** The roles that any head of the recording plays: the one of most heads first, the one that says least last. */
export function rolesOf(recording) {
  const counts = new Map();
  for (const call of recording.calls) {
    for (const found of call.roles) if (found) counts.set(found.role, (counts.get(found.role) ?? 0) + 1);
  }
  return orderRoles([...counts].map(([role, count]) => ({ role, count }))).map(({ role }) => role);
}

/** The heads that play a role and read the same text as a call: { call, head }; of its layer if the page has no more. */
export function headsOfRole(recording, like, role) {
  const alike = recording.calls.filter(
    (call) =>
      (recording.layers.whole || call === like) &&
      call.kind === like.kind &&
      call.run === like.run &&
      call.queries === like.queries &&
      call.keys === like.keys,
  );
  return alike.flatMap((call) =>
    call.heads.map((_, head) => ({ call, head })).filter(({ head }) => call.roles[head]?.role === role),
  );
}

/** "Layer 3, head 5: open", with its kind and run where there are several. */
export function headName({ calls }, call, head) {
  const kinds = new Set(calls.map((one) => one.kind)).size > 1 ? [say(`kind.${call.kind}`)] : [];
  const runs = new Set(calls.map((one) => one.run)).size > 1 ? [say("run.n", { run: call.run })] : [];
  const place = say("overview.open", { layer: call.layer, head: call.heads[head] });
  return [place, ...kinds, ...runs].join(", ");
}

/** "Layer 3 · head 5", with its kind in front where there are several. */
export function headPlace({ calls }, call, head) {
  const kinds = new Set(calls.map((one) => one.kind)).size > 1 ? [say(`kind.${call.kind}`)] : [];
  return [...kinds, say("layer.n", { layer: call.layer }), say("text.head.n", { head: call.heads[head] })].join(" · ");
}

/** "it → tired 73%", in its parts; `said` is how a quantity other than a weight is written. */
export function pairParts(from, to, weight, said = shareText(weight)) {
  return [
    datum(from, "pair-token"),
    make("span", { class: "arrow", "aria-hidden": "true" }, " → "),
    datum(to, "pair-token"),
    " ",
    datum(said, "number"),
  ];
}

/** The example of a role, in its parts; nothing without an example. */
export function exampleParts(call, found) {
  if (!found || found.query === null) return [];
  return pairParts(call.queryTokens[found.query], call.keyTokens[found.key], found.weight);
}

/** Whether a head plays a role; "" is any. */
export function plays({ call, head }, role) {
  return role === "" || call.roles[head]?.role === role;
}

/** The name of a head's role, for below its thumbnail; null without one. */
export function roleBadge(call, head) {
  const found = call.roles[head];
  return found ? make("span", { class: "badge" }, say(`role.${found.role}`)) : null;
}

/** The choice of a role whose heads alone are shown; nothing where no head has one. */
export function roleChoice({ recording, state }) {
  const roles = rolesOf(recording);
  if (!roles.length) return [];
  const options = [["", say("role.all")], ...roles.map((role) => [role, say(`role.${role}`)])];
  const select = choice(options, state.now.role, (role) => state.set({ role }), {
    "aria-label": say("role"),
    class: "role-choice",
  });
  return [select];
}

/** What a head does, with its example, as one line of text. */
export function roleTitle(call, head) {
  const found = call.roles[head];
  if (!found) return "";
  const example = exampleParts(call, found).map((part) => (typeof part === "string" ? part : part.textContent));
  return `${say(`role.${found.role}.says`)}${example.length ? ` ${example.join("")}` : ""}`;
}
