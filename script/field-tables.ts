/** The fields of a request, read out of the contract's schemas. */

import { DestinationRequest } from 'soundpost-contract/destination';
import { JobOptions, VoiceMessageRequest } from 'soundpost-contract/job-request';
import { OutputRequest, TranscriptRequest, WaveformRequest } from 'soundpost-contract/output-request';
import { z } from 'zod';
import { code, markdownTable } from './markdown-table.ts';

export type Rule = z.core.JSONSchema.BaseSchema;

export const outputFieldTable = (): string => fieldTable('output', OutputRequest);
export const waveformFieldTable = (): string => fieldTable('waveform', WaveformRequest);
export const transcriptFieldTable = (): string => fieldTable('transcript', TranscriptRequest);
export const optionFieldTable = (): string => fieldTable('options', JobOptions);
export const destinationFieldTable = (): string => fieldTable('destination', DestinationRequest);
export const voiceMessageFieldTable = (): string => fieldTable('voiceMessage', VoiceMessageRequest);

function fieldTable(parent: string, schema: z.ZodType): string {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return markdownTable(
    ['Field', 'Value', 'Default', 'What it is'],
    Object.entries(properties).map(([name, property]) =>
      fieldRow(`${parent}.${name}`, ruleOf(property), required.includes(name)),
    ),
  );
}

/** A row of a table with the columns Field, Value, Default and What it is. */
export function fieldRow(name: string, rule: Rule, isRequired: boolean): [name: string, ...string[]] {
  const unless = rule.default === undefined ? '' : code(String(rule.default));
  return [code(name), valueCell(rule), isRequired ? 'required' : unless, rule.description ?? ''];
}

/** JSON Schema allows `true` for anything. */
export function ruleOf(property: Rule | boolean): Rule {
  return typeof property === 'object' ? property : {};
}

function valueCell(rule: Rule): string {
  const words = rule.enum ?? (rule.const === undefined ? undefined : [rule.const]);
  if (words !== undefined) {
    // OpenAPI 3.0 lists null among the words of a field that may be null.
    return words
      .filter((word) => word !== null)
      .map((word) => code(String(word)))
      .join(', ');
  }
  if (rule.anyOf !== undefined) {
    return [...new Set(rule.anyOf.map((choice) => valueCell(choice as Rule)))].join(', or ');
  }
  switch (rule.type) {
    case 'integer':
    case 'number':
      return `${rule.type}${rangeOf(rule)}`;
    case 'array':
      return `list of ${valueCell((rule.items ?? {}) as Rule)}`;
    case 'string':
      if (rule.example !== undefined) {
        return `text such as ${code(String(rule.example))}`;
      }
      return rule.maxLength === undefined ? 'text' : `text, at most ${rule.maxLength} characters`;
    default:
      return String(rule.type ?? 'any');
  }
}

/** Without the bounds that zod gives each integer. */
function rangeOf({ minimum = -Infinity, maximum = Infinity, exclusiveMinimum }: Rule): string {
  if (exclusiveMinimum !== undefined) {
    return ` above ${exclusiveMinimum}`;
  }
  const from = minimum > Number.MIN_SAFE_INTEGER ? `, ${minimum}` : '';
  if (maximum < Number.MAX_SAFE_INTEGER) return `${from} to ${maximum}`;
  return from && `${from} or more`;
}
