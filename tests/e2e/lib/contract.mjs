// Holds every exchange of every scenario against openapi.yaml: the operation is documented, its status and content
// type are, the body fits the schema and has no member that the schema does not name. What was seen is written down
// for the last scenario, which wants to find all that the document promises.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../judges/package.json', import.meta.url));
const YAML = require('yaml');
const Ajv = require('ajv/dist/2020').default;
const addFormats = require('ajv-formats').default;

export const OPENAPI = process.env.TRACEPLANE_OPENAPI || new URL('../../../openapi.yaml', import.meta.url).pathname;
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const BASE = 'https://openapi.invalid/document';

let contract = null;

// The document, its operations [{method, path, id, operation, pattern}], and a validator; null when there is none.
export function loadContract() {
  if (contract !== null || !fs.existsSync(OPENAPI)) return contract;
  const document = YAML.parse(fs.readFileSync(OPENAPI, 'utf8'));
  const operations = [];
  for (const [route, item] of Object.entries(document.paths)) {
    const pattern = new RegExp(`^${route.replace(/[.]/g, '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`);
    for (const method of METHODS)
      if (item[method]) operations.push({ method: method.toUpperCase(), path: route, id: item[method].operationId, item, operation: item[method], pattern });
  }
  contract = { document, operations, ajv: makeAjv(closed(document)), compiled: new Map() };
  return contract;
}

function makeAjv(document) {
  const ajv = new Ajv({ strict: false, allErrors: false, validateFormats: true });
  addFormats(ajv);
  ajv.addFormat('int64', true);
  ajv.addFormat('int32', true);
  ajv.addFormat('uint64', true);
  ajv.addSchema(document, BASE);
  return ajv;
}

// A copy of the document whose object schemas refuse members that they do not name.
function closed(node, isComposed = false) {
  if (Array.isArray(node)) return node.map((n) => closed(n, isComposed));
  if (node === null || typeof node !== 'object') return node;
  const out = {};
  for (const [key, value] of Object.entries(node)) out[key] = closed(value, ['allOf', 'anyOf', 'oneOf'].includes(key));
  const isObject = out.properties && typeof out.properties === 'object' && (out.type === 'object' || out.type === undefined);
  if (isObject && !isComposed && out.additionalProperties === undefined && out.unevaluatedProperties === undefined)
    out.unevaluatedProperties = false;
  return out;
}

export function resolve(node) {
  while (node && node.$ref) node = node.$ref.slice(2).split('/').reduce((n, key) => n[key.replace(/~1/g, '/').replace(/~0/g, '~')], contract.document);
  return node;
}

const escape = (s) => encodeURIComponent(s.replace(/~/g, '~0').replace(/\//g, '~1'));

function validator(pointer) {
  let v = contract.compiled.get(pointer);
  if (!v) {
    v = contract.ajv.compile({ $ref: `${BASE}#${pointer}` });
    contract.compiled.set(pointer, v);
  }
  return v;
}

// Where the schema of a response is: through the $ref of the response, if it is one.
function responsePointer(op, status, type) {
  const response = op.operation.responses[status];
  const at = response.$ref ? response.$ref.slice(1) : `/paths/${escape(op.path)}/${op.method.toLowerCase()}/responses/${status}`;
  return `${at}/content/${escape(type)}/schema`;
}

export function findOperation(method, target) {
  const pathname = target.split('?')[0].replace(/^\/v1(?=\/)/, '');
  const fits = (op) => op.pattern.test(pathname) && (op.method === method || (op.method === 'GET' && method === 'HEAD'));
  return loadContract()?.operations.find(fits) ?? null;
}

const mediaType = (headers) => String(headers['content-type'] ?? '').split(';')[0].trim();

function fail(request, reply, why) {
  throw new Error(`openapi.yaml does not describe ${request.method} ${request.target} -> ${reply.status} ${mediaType(reply.headers)}: ${why}\n${reply.body.subarray(0, 2000)}`);
}

function checkBody(request, reply, op, media, type) {
  if (!/json$/.test(type) || !media.schema || reply.body.length === 0) return;
  const validate = validator(responsePointer(op, reply.statusKey, type));
  if (!validate(JSON.parse(reply.body.toString('utf8'))))
    fail(request, reply, validate.errors.map((e) => `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`).join('; '));
}

// A JSON body and parameters that the service took must be ones that the document allows.
function checkRequest(request, reply, op) {
  const known = [...(op.operation.parameters ?? []), ...(op.item.parameters ?? [])].map(resolve);
  for (const key of new URLSearchParams(request.target.split('?')[1] ?? '').keys())
    if (!known.some((p) => p.in === 'query' && p.name === key)) fail(request, reply, `it takes a parameter '${key}' that is not documented`);
  const content = resolve(op.operation.requestBody)?.content?.['application/json'];
  const body = request.body;
  if (!content?.schema || body === undefined || Buffer.isBuffer(body) || typeof body !== 'object' || typeof body.pipe === 'function') return;
  const media = op.operation.requestBody.$ref ? op.operation.requestBody.$ref.slice(1) : `/paths/${escape(op.path)}/${op.method.toLowerCase()}/requestBody`;
  const validate = validator(`${media}/content/application~1json/schema`);
  if (!validate(JSON.parse(JSON.stringify(body))))
    fail(request, reply, `it takes a body that the document refuses: ${contract.ajv.errorsText(validate.errors)}`);
}

// Check one exchange and note it. Requests to places that are nowhere need only a problem for an answer.
export function checkExchange(request, reply) {
  if (!loadContract()) return;
  const op = findOperation(request.method, request.target);
  const type = mediaType(reply.headers);
  if (op === null) {
    if (reply.status >= 400 && request.method !== 'HEAD' && type !== 'application/problem+json') fail(request, reply, 'a refusal is application/problem+json');
    if (reply.status < 400 && request.method !== 'OPTIONS') fail(request, reply, 'the operation is not documented');
    return;
  }
  reply.statusKey = [String(reply.status), `${String(reply.status)[0]}XX`, 'default'].find((k) => op.operation.responses[k]);
  if (!reply.statusKey) fail(request, reply, 'the status is not documented');
  const content = resolve(op.operation.responses[reply.statusKey]).content;
  note({ id: op.id, status: String(reply.status), key: reply.statusKey, type, method: request.method });
  if (request.method === 'HEAD') return;
  if (reply.body.length > 0 && !content?.[type]) fail(request, reply, 'the content type is not documented');
  if (content?.[type] && reply.status !== 206 && !reply.headers['content-encoding']) checkBody(request, reply, op, content[type], type);
  if (reply.status < 300) checkRequest(request, reply, op);
}

// What this process saw goes into a file of its own in the folder of the run, but not what it saw by chance: else another run may miss it.
const seen = new Set();
let isByChance = false;
export function note(observation) {
  if (!isByChance) seen.add(JSON.stringify(observation));
}

// From here on this process makes random requests.
export function seeByChance() {
  isByChance = true;
}
process.on('exit', () => {
  const folder = process.env.TRACEPLANE_E2E_SEEN;
  if (folder && seen.size > 0) fs.writeFileSync(path.join(folder, `${process.pid}.json`), `[${[...seen].join(',\n')}]`);
});
