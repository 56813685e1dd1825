// Decompresses zlib.

/**
 * The bytes that were compressed.
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export async function inflate(bytes) {
  // Written directly: a stream from a Blob goes through another process and takes tens of milliseconds.
  const { readable, writable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  writer.write(bytes);
  writer.close();
  return new Uint8Array(await new Response(readable).arrayBuffer());
}
