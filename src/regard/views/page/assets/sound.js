// Playing a part of the recording, where the browser can.

/** Plays spans of samples; one at a time. */
export class Sound {
  /**
   * @param {ArrayLike<number>} samples 16 bits each
   * @param {number} rate per second
   */
  constructor(samples, rate) {
    this.samples = samples;
    this.rate = rate;
    this.source = null;
    /** @type {any} */
    this.context = null;
    /** @type {any} */
    this.made = null;
  }

  /** Whether this browser can play at all. */
  get possible() {
    return typeof AudioContext === "function";
  }

  /** What is playing: { from, to, at }, in seconds; null in silence. */
  get playing() {
    if (!this.source) return null;
    const { from, to, began } = this.source;
    return { from, to, at: Math.min(to, from + this.context.currentTime - began) };
  }

  /** The samples as the browser plays them, made when they are first heard. */
  get buffer() {
    if (!this.made) {
      this.made = this.context.createBuffer(1, Math.max(1, this.samples.length), this.rate);
      this.made.copyToChannel(
        Float32Array.from(this.samples, (one) => one / 32768),
        0,
      );
    }
    return this.made;
  }

  /**
   * Plays from one second to another, in place of what is playing.
   * @param {number} from
   * @param {number} to
   * @param {() => void} ended called when it ends or is stopped
   */
  play(from, to, ended) {
    this.stop();
    if (!this.possible) return;
    this.context ??= new AudioContext();
    this.context.resume();
    const node = this.context.createBufferSource();
    node.buffer = this.buffer;
    node.connect(this.context.destination);
    const source = { node, from, to, began: this.context.currentTime, ended };
    node.onended = () => {
      if (this.source !== source) return;
      this.source = null;
      ended();
    };
    this.source = source;
    node.start(0, from, Math.max(0.02, to - from));
  }

  stop() {
    const { source } = this;
    if (!source) return;
    this.source = null;
    source.node.stop();
    source.ended();
  }
}
