// Where the labels on a plane go: beside their points, but neither on each other nor on another point.

const KNOB_REACH = 14;
/** How far a label may keep from its point, the nearest first. */
const LABEL_GAPS = [16, 34, 54];

/** The places for a label, the best first: `x` and `y` are those of its middle, from its point. */
function placesAround({ width, height, below }) {
  return LABEL_GAPS.flatMap((gap) => {
    const first = (below ? 1 : -1) * (gap + height / 2);
    const aside = gap + width / 2;
    const corner = { x: 0.7 * gap + width / 2, y: Math.sign(first) * (0.7 * gap + height / 2) };
    const corners = [1, -1].flatMap((up) => [1, -1].map((right) => ({ x: right * corner.x, y: up * corner.y })));
    return [{ x: 0, y: first }, { x: 0, y: -first }, { x: aside, y: 0 }, { x: -aside, y: 0 }, ...corners];
  });
}

function overlapping(one, other) {
  return (
    Math.abs(one.x - other.x) < (one.width + other.width) / 2 &&
    Math.abs(one.y - other.y) < (one.height + other.height) / 2
  );
}

/**
 * The middle of each label, from its point. A mark is { x, y, width, height, below }: its point, the size of its label,
 * and whether that is best below the point. `edge` is where the plane ends.
 * @returns {{ x: number, y: number }[]}
 */
export function labelPlaces(marks, edge) {
  const knobs = marks.map(({ x, y }) => ({ x, y, width: 2 * KNOB_REACH, height: 2 * KNOB_REACH }));
  const labels = [];
  return marks.map((mark) => {
    const boxOf = ({ x, y }) => ({ x: mark.x + x, y: mark.y + y, width: mark.width, height: mark.height });
    const inside = ({ x, y, width, height }) => Math.abs(x) + width / 2 <= edge && Math.abs(y) + height / 2 <= edge;
    const hits = (box) => [...knobs, ...labels].filter((other) => overlapping(box, other)).length;
    const places = placesAround(mark).filter((place) => inside(boxOf(place)));
    const least = Math.min(...places.map((place) => hits(boxOf(place))));
    const place = places.find((one) => hits(boxOf(one)) === least) ?? placesAround(mark)[0];
    labels.push(boxOf(place));
    return place;
  });
}
