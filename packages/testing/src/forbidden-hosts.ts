/**
 * Hosts that nobody may be led to: addresses of every range that is not public, in the spellings
 * that URLs, resolvers and sockets take.
 */

/**
 * First and last of the ranges, and what lies in them (IANA's registries of special addresses;
 * clouds' own).
 */
const ipv4 = [
  ...[
    '0.0.0.0',
    '0.255.255.255',
    '10.0.0.0',
    '10.1.2.3',
    '10.255.255.255',
    '100.64.0.0',
    '100.100.100.200',
    '100.127.255.255',
  ],
  ...[
    '127.0.0.1',
    '127.0.0.53',
    '127.1.2.3',
    '127.255.255.254',
    '169.254.0.0',
    '169.254.169.254',
    '169.254.170.2',
    '169.254.255.255',
  ],
  ...[
    '172.16.0.0',
    '172.17.0.1',
    '172.31.255.255',
    '192.0.0.0',
    '192.0.0.192',
    '192.0.2.1',
    '192.31.196.1',
    '192.52.193.1',
  ],
  ...[
    '192.88.99.1',
    '192.168.0.0',
    '192.168.1.1',
    '192.168.255.255',
    '192.175.48.1',
    '198.18.0.0',
    '198.19.255.255',
    '198.51.100.1',
  ],
  ...['203.0.113.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', '168.63.129.16'],
];

const ipv6 = [
  ...[
    '::1',
    '::',
    'fe80::1',
    'fe80::a9fe:a9fe',
    'fec0::1',
    'fc00::1',
    'fd12:3456::1',
    'fd00:ec2::254',
    'fd20:ce::254',
    'ff02::1',
  ],
  ...[
    '5f00::1',
    '100::1',
    '100:0:0:1::1',
    '4000::1',
    '1fff:ffff::1',
    '2001:0:1::1',
    '2001:1::1',
    '2001:2::1',
    '2001:10::1',
    '2001:20::1',
  ],
  ...['2001:1ff:ffff::1', '2001:db8::1', '3fff::1', '2620:4f:8000::1'],
];

const hex = (value: number, digits = 0): string => value.toString(16).padStart(digits, '0');
const octal = (value: number): string => `0${value.toString(8)}`;

/**
 * As WHATWG reads hosts of URLs: numbers of one to four parts, each in three bases, full-width and
 * encoded digits.
 */
function spellings(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const whole = ((a * 256 + b) * 256 + c) * 256 + d;
  const fullWidth = [...address].map((digit) =>
    digit === '.' ? '。' : String.fromCodePoint((digit.codePointAt(0) ?? 0) + 0xfee0),
  );
  return [
    address,
    `${address}.`,
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${whole}`,
    `0x${hex(whole)}`,
    octal(whole),
    [a, b, c, d].map((part) => `0x${hex(part)}`).join('.'),
    [a, b, c, d].map(octal).join('.'),
    [octal(a), `0x${hex(b)}`, c, d].join('.'),
    `0x${hex(a)}.${(b * 256 + c) * 256 + d}`,
    `000${octal(a)}.${b}.${c}.${d}`,
    fullWidth.join(''),
    [...address].map((digit) => `%${hex(digit.codePointAt(0) ?? 0)}`).join(''),
  ];
}

/**
 * IPv6 that carries it: mapped, compatible, translated, NAT64 of both prefixes, 6to4, ISATAP,
 * Teredo.
 */
function carriers(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const [high, low] = [hex(a * 256 + b), hex(c * 256 + d)];
  const [notHigh, notLow] = [hex(0xffff - (a * 256 + b)), hex(0xffff - (c * 256 + d))];
  return [
    `::ffff:${address}`,
    `::ffff:${high}:${low}`,
    `0:0:0:0:0:ffff:${high}:${low}`,
    `::${high}:${low}`,
    `::ffff:0:${high}:${low}`,
    `64:ff9b::${high}:${low}`,
    `64:ff9b:1::${high}:${low}`,
    `2002:${high}:${low}::1`,
    `fe80::5efe:${high}:${low}`,
    `2001:0:5db8:d70e:0:0:${notHigh}:${notLow}`,
  ];
}

const names = [
  'localhost',
  'LOCALHOST.',
  'a.localhost',
  'printer.local',
  'metadata.google.internal',
  'router.home.arpa',
  'redis',
  'x.onion',
];

/** What a resolver may answer, and a server may send somebody to. */
export const forbiddenAddresses: readonly string[] = [
  ...new Set([...ipv4, ...ipv6, ...ipv4.flatMap(carriers)]),
];

/** As hosts of URLs. */
export const forbiddenHosts: readonly string[] = [
  ...new Set([
    ...ipv4.flatMap(spellings),
    ...[...ipv6, ...ipv4.flatMap(carriers)].map((address) => `[${address}]`),
    ...names,
  ]),
];
