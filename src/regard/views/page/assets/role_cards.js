// Up to five heads that do something clear, each as a card: thumbnail, one sentence, an example.

import { roleFrom } from "./data/call.js";
import { make, press } from "./elements.js";
import { say } from "./languages.js";
import { exampleParts } from "./roles.js";
import { Shading } from "./shading.js";
import { paintThumbnail, thumbnailOf } from "./thumbnails.js";

/** The cards below the text, and the way to all heads. */
export function cardsSection(app) {
  const { recording, state } = app;
  const count = recording.calls.reduce((sum, call) => sum + call.heads.length, 0);
  const { clear, heads } = recording.cards;
  const cards = heads.map(([call, head, ...found]) => roleCard(app, recording.calls[call], head, roleFrom(found)));
  const all = press(say(count === 1 ? "cards.one" : "cards.all", { count }), () => state.set({ view: "overview" }), {
    class: "all-heads",
  });
  if (!cards.length) return [all];
  return [
    make("h2", {}, say(clear ? "cards.title" : "cards.short")),
    make("div", { class: "role-cards" }, ...cards),
    all,
  ];
}

function roleCard(app, call, head, found) {
  const { inks, state } = app;
  const { role, query } = found;
  const canvas = make("canvas", { width: 1, height: 1, "aria-hidden": "true" });
  // Roles are about weights.
  paintThumbnail(canvas, thumbnailOf(call, head), new Shading({ ramp: inks.ramp, scale: state.now.scale }));
  const where = `${say("layer.n", { layer: call.layer })} · ${say("text.head.n", { head: call.heads[head] })}`;
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
