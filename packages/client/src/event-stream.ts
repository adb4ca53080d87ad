/** Parses Server-Sent Events (WHATWG HTML, 9.2.6). */

export interface ServerEvent {
  readonly event: string;
  /** Of this event, or of the last event with an id. */
  readonly id: string;
  readonly data: string;
}

/** @param heard called for every chunk, including comments */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  heard: () => void,
): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  let id = '';
  const reader = body.getReader();
  // Not `for await`: Safari's streams have no iterator.
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    heard();
    // A final carriage return may be the first half of a line break.
    const text = rest + decoder.decode(chunk.value, { stream: true });
    const blocks = text.replaceAll(/\r\n|\r(?!$)/g, '\n').split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = fieldsOf(block);
      id = fields.id ?? id;
      if (fields.data !== undefined) {
        yield { event: fields.event ?? 'message', id, data: fields.data };
      }
    }
  }
}

function fieldsOf(block: string): { event?: string; id?: string; data?: string } {
  const fields: Record<string, string> = {};
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([^:]+):? ?(.*)$/s.exec(line) ?? [];
    fields[name] = name === 'data' && fields.data !== undefined ? `${fields.data}\n${value}` : value;
  }
  return fields;
}
