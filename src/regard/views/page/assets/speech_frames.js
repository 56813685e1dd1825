// Frames of audio: which of them are drawn together, which times are written under them. Pure functions.

/**
 * Weights of frames summed over groups of `size` frames.
 * @param {ArrayLike<number>} values row by row
 * @param {number} rows
 * @param {number} frames
 * @param {number} size
 * @returns {Float32Array} rows × groups
 */
export function groupedFrames(values, rows, frames, size) {
  const groups = Math.ceil(frames / size);
  const sums = new Float32Array(rows * groups);
  for (let row = 0; row < rows; row += 1)
    for (let frame = 0; frame < frames; frame += 1)
      sums[row * groups + Math.floor(frame / size)] += values[row * frames + frame];
  return sums;
}

/**
 * How many frames are drawn as one, so that each has at least `least` pixels.
 * @param {number} frames
 * @param {number} width
 * @param {number} least
 */
export function frameGroup(frames, width, least = 3) {
  return Math.max(1, Math.ceil((frames * least) / Math.max(1, width)));
}

/**
 * The seconds that are written along the axis: round numbers, at least `room` pixels apart.
 * @param {number} start
 * @param {number} end
 * @param {number} width
 * @param {number} room
 */
export function timeMarks(start, end, width, room = 56) {
  const least = ((end - start) * room) / Math.max(1, width);
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60].find((one) => one >= least) ?? 60;
  const marks = [];
  for (let at = Math.ceil(start / step - 1e-9) || 0; at * step <= end + 1e-9; at += 1) marks.push(at * step);
  return marks;
}

/**
 * A time as people write it: 0.36, 12.40, 1:02.50.
 * @param {number} seconds
 * @param {number} places
 */
export function timeText(seconds, places = 2) {
  if (seconds < 60) return seconds.toFixed(places);
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${(seconds - 60 * minutes).toFixed(places).padStart(places ? places + 3 : 2, "0")}`;
}
