/**
 * What `kubectl kustomize` makes of a folder, as far as deploy/kubernetes uses it: resources, components, images, generated ConfigMaps (without the hash
 * behind their names), JSON patches, a namespace. Where there is a kubectl a test compares both.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import type { Json } from '../client.ts';
import { applyPatch } from './json-patch.ts';

/** One object of Kubernetes; its form is checked by the schemas. */
export type Manifest = Json;

interface Built {
  readonly manifests: Manifest[];
  /** Every file that was read, the kustomizations too. */
  readonly files: string[];
}

const KNOWN = new Set([
  'apiVersion',
  'kind',
  'namespace',
  'resources',
  'components',
  'patches',
  'images',
  'configMapGenerator',
]);

/** @throws Error on what this does not understand, or a file that is not there */
export function build(folder: string): Built {
  const built: Built = { manifests: [], files: [] };
  buildOnto(built, folder);
  return built;
}

function buildOnto({ manifests, files }: Built, folder: string): void {
  const file = join(folder, 'kustomization.yaml');
  const kustomization: Json = parse(readFileSync(file, 'utf8'));
  const unknown = Object.keys(kustomization).filter((key) => !KNOWN.has(key));
  if (unknown.length > 0) throw new Error(`${file} has ${unknown.join(', ')}, which is not understood here`);
  files.push(file);
  const {
    resources = [],
    components = [],
    configMapGenerator = [],
    patches = [],
    images = [],
  } = kustomization;
  for (const name of resources) {
    const read = readResource(join(folder, name));
    manifests.push(...read.manifests);
    files.push(...read.files);
  }
  // A component works on all that is there already.
  for (const name of components) buildOnto({ manifests, files }, join(folder, name));
  for (const generator of configMapGenerator) generate(manifests, generator);
  for (const patch of patches) patchTargets(manifests, patch);
  for (const image of images) setImage(manifests, image);
  if (kustomization.namespace !== undefined) setNamespace(manifests, kustomization.namespace);
}

function readResource(path: string): Built {
  if (!existsSync(path)) throw new Error(`a kustomization names ${path}, which is not there`);
  // What a base has is its own until it is done: its patches reach nothing of ours.
  return statSync(path).isDirectory() ? build(path) : { manifests: readManifests(path), files: [path] };
}

function patchTargets(manifests: readonly Manifest[], { target, patch }: Json): void {
  const targets = manifests.filter((manifest) => isTarget(manifest, target));
  if (targets.length === 0) throw new Error(`nothing is the target ${JSON.stringify(target)} of a patch`);
  for (const manifest of targets) applyPatch(manifest, parse(patch));
}

function setNamespace(manifests: readonly Manifest[], namespace: string): void {
  for (const { kind, metadata } of manifests) if (kind !== 'Namespace') metadata.namespace = namespace;
}

export function readManifests(path: string): Manifest[] {
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
    if (document.errors.length > 0) throw new Error(`${path}: ${document.errors[0]?.message}`);
    return document.toJS();
  });
}

function generate(manifests: Manifest[], { name, behavior, literals }: Json): void {
  const data = Object.fromEntries(
    literals.map((literal: string) => [
      literal.slice(0, literal.indexOf('=')),
      literal.slice(literal.indexOf('=') + 1),
    ]),
  );
  const before = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
  if (behavior === 'merge') Object.assign(before.data, data);
  else manifests.push({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
}

function isTarget({ kind, metadata }: Manifest, target: Json): boolean {
  const matches = (selector: string): boolean => {
    const [, label = '', list = ''] = /^(\S+?)(?:=| in \()([^)]*)\)?$/.exec(selector) ?? [];
    return list.split(/,\s*/).includes(metadata.labels?.[label]);
  };
  return (
    kind === target.kind &&
    (target.name === undefined || metadata.name === target.name) &&
    (target.labelSelector === undefined || matches(target.labelSelector))
  );
}

function setImage(manifests: Manifest[], { name, newName, newTag }: Json): void {
  for (const { spec } of manifests) {
    for (const container of spec?.template?.spec?.containers ?? []) {
      if (container.image === name) container.image = `${newName}:${newTag}`;
    }
  }
}
