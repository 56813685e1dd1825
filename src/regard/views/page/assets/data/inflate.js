// Bytes that were compressed with zlib.

export async function inflate(bytes) {
  // Written by hand: a stream out of a Blob takes the way through another process, tens of milliseconds.
  const { readable, writable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  writer.write(bytes);
  writer.close();
  return new Uint8Array(await new Response(readable).arrayBuffer());
}
