/**
 * Numbers that WhatsApp knows under another form than the one people write. An account keeps the number that it was made
 * with, so after a country changed its numbering plan both forms exist; each rule says which forms one subscriber may have
 * and which is the likelier. WhatsApp is then asked for all of them (`onWhatsApp`), and its answer decides.
 */
interface NumberRule {
  readonly country: string;
  readonly source: string;
  /** With a country code; the parts of a match are handed to `forms`. */
  readonly pattern: RegExp;
  /** The likeliest first. */
  readonly forms: (...parts: string[]) => readonly string[];
}

/** Area codes 11–28 (São Paulo, Rio de Janeiro, Espírito Santo) got the ninth digit first, and accounts there moved to it. */
const LAST_AREA_WITH_NINTH_DIGIT = 28;

export const numberRules: readonly NumberRule[] = [
  {
    country: 'Brazil',
    source:
      'Anatel, Resolução 553/2010: mobile numbers got a leading 9, area by area until November 2016; accounts of the later areas kept eight digits',
    // Mobile numbers of eight digits began with 6 to 9; what begins with 2 to 5 is a landline and never got the 9.
    pattern: /^55([1-9]\d)9?([6-9]\d{7})$/,
    forms: (area, subscriber) => {
      const [long, short] = [`55${area}9${subscriber}`, `55${area}${subscriber}`];
      return Number(area) <= LAST_AREA_WITH_NINTH_DIGIT ? [long, short] : [short, long];
    },
  },
  {
    country: 'Mexico',
    source:
      'WhatsApp Help Center "About international phone number format": 1 after +52; dropped from the numbering plan in August 2019 (IFT), so that newer accounts have none',
    pattern: /^521?(\d{10})$/,
    forms: (subscriber) => [`521${subscriber}`, `52${subscriber}`],
  },
  {
    country: 'Argentina',
    source:
      'WhatsApp Help Center, same page: 9 between country and area code, no 15 before the subscriber number, 13 digits in all',
    pattern: /^549?(\d{10})$/,
    forms: (subscriber) => [`549${subscriber}`, `54${subscriber}`],
  },
  {
    country: 'Argentina, written with the 15 of calls inside the country',
    source: 'as above; area codes have 2 to 4 digits, and area code and subscriber number 10 together',
    pattern: /^549?(?:(11)15(\d{8})|(\d{3})15(\d{7})|(\d{4})15(\d{6}))$/,
    forms: (...parts) => {
      const subscriber = parts.join('');
      return [`549${subscriber}`, `54${subscriber}`];
    },
  },
];

/** The forms under which WhatsApp may know a number, the likeliest first. @param digits with country code */
export function numberForms(digits: string): readonly string[] {
  for (const { pattern, forms } of numberRules) {
    const match = pattern.exec(digits);
    if (match !== null) {
      return forms(...match.slice(1).filter((part) => part !== undefined));
    }
  }
  return [digits];
}
