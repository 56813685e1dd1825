// Up to five heads that do something clear, or seem to, each as a card: thumbnail, one sentence, an example.

import { roleFrom } from "./data/call.js";
import { make, press } from "./elements.js";
import { say } from "./languages.js";
import { numberText } from "./numbers.js";
import { exampleParts, headPlace } from "./roles.js";
import { Shading } from "./shading.js";
import { paintThumbnail, thumbnailOf } from "./thumbnails.js";

/** The cards below the text, and the way to all heads. */
export function cardsSection(app) {
  const { recording, state } = app;
  const count = recording.calls.reduce((sum, call) => sum + call.heads.length, 0);
  if (recording.changed?.length) return changedSection(app);
  const { clear, heads } = recording.cards;
  const seem = clear ? "cards.others" : recording.layers.whole ? "cards.short" : "cards.seem";
  const parts = [
    [heads.slice(0, clear), "cards.title"],
    [heads.slice(clear), seem],
  ].filter(([some]) => some.length);
  const all = press(say(count === 1 ? "cards.one" : "cards.all", { count }), () => state.set({ view: "overview" }), {
    class: "all-heads",
  });
  const card = ([call, head, ...found]) => roleCard(app, recording.calls[call], head, roleFrom(found));
  return [
    ...parts.flatMap(([some, title]) => [
      make("h2", {}, say(title)),
      make("div", { class: "role-cards" }, ...some.map(card)),
    ]),
    all,
  ];
}

/** Where recordings are compared: the heads that changed most, each with its picture on this side. */
function changedSection(app) {
  const { recording, state } = app;
  const cards = recording.changed.map(([index, head]) => {
    const call = recording.calls[index];
    const canvas = make("canvas", { width: 1, height: 1, "aria-hidden": "true" });
    const what = state.now.what === "difference" ? "difference" : "weight";
    paintThumbnail(canvas, thumbnailOf(call, head, what), app.shading());
    const where = headPlace(recording, call, head);
    const role = call.roles[head] ? say(`role.${call.roles[head].role}`) : "";
    return press(
      [
        canvas,
        make(
          "span",
          { class: "about" },
          make("strong", {}, where),
          make("span", {}, say("compare.change", { change: numberText(call.change[head]) })),
          make("span", {}, role),
        ),
      ],
      () => state.set({ call: index, head, group: "head" }),
      { class: "role-card" },
    );
  });
  const all = press(say("compare.all"), () => state.set({ view: "overview", sort: "change" }), { class: "all-heads" });
  return [make("h2", {}, say("compare.changed")), make("div", { class: "role-cards" }, ...cards), all];
}

function roleCard(app, call, head, found) {
  const { inks, state } = app;
  const { role, query } = found;
  const canvas = make("canvas", { width: 1, height: 1, "aria-hidden": "true" });
  // Roles are about weights.
  paintThumbnail(canvas, thumbnailOf(call, head), new Shading({ ramp: inks.ramp, scale: state.now.scale }));
  const where = headPlace(app.recording, call, head);
  const open = () => state.set({ call: call.index, head, group: "head", direction: "from", query, key: null });
  return press(
    [
      canvas,
      make(
        "span",
        { class: "about" },
        make("strong", {}, say(`role.${role}`)),
        make("span", {}, say(`role.${role}.says`)),
        make("span", { class: "example" }, ...exampleParts(call, found)),
        make("small", {}, where),
      ),
    ],
    open,
    { class: "role-card" },
  );
}
