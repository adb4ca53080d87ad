// Server-Sent Events read by hand: EventSource cannot send a key along.

/** Reads `text/event-stream` (WHATWG HTML, 9.2.6), as far as our own servers use it. @param {ReadableStream} body of the answer */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      if (fields.data !== undefined) {
        yield { id: fields.id, name: fields.event, data: fields.data };
      }
    }
  }
}
