/** XML namespaces, each with its specification. */
export const ns = {
  archive: 'urn:xmpp:mam:2', // XEP-0313
  archivePreferences: 'urn:xmpp:mam:2', // XEP-0441, same name
  blocking: 'urn:xmpp:blocking', // XEP-0191
  bookmarks: 'urn:xmpp:bookmarks:1', // XEP-0402
  call: 'urn:xmpp:jingle-message:0', // XEP-0353
  capabilities: 'http://jabber.org/protocol/caps', // XEP-0115
  carbons: 'urn:xmpp:carbons:2', // XEP-0280
  chatMarkers: 'urn:xmpp:chat-markers:0', // XEP-0333
  chatStates: 'http://jabber.org/protocol/chatstates', // XEP-0085
  conference: 'jabber:x:conference', // XEP-0249
  correction: 'urn:xmpp:message-correct:0', // XEP-0308
  delay: 'urn:xmpp:delay', // XEP-0203
  discoInfo: 'http://jabber.org/protocol/disco#info', // XEP-0030
  discoItems: 'http://jabber.org/protocol/disco#items', // XEP-0030
  fallback: 'urn:xmpp:fallback:0', // XEP-0428
  fileMetadata: 'urn:xmpp:file:metadata:0', // XEP-0446
  fileSharing: 'urn:xmpp:sfs:0', // XEP-0447
  form: 'jabber:x:data', // XEP-0004
  forward: 'urn:xmpp:forward:0', // XEP-0297
  hashes: 'urn:xmpp:hashes:2', // XEP-0300
  hints: 'urn:xmpp:hints', // XEP-0334
  jingle: 'urn:xmpp:jingle:1', // XEP-0166
  muc: 'http://jabber.org/protocol/muc', // XEP-0045
  mucAdmin: 'http://jabber.org/protocol/muc#admin', // XEP-0045 §9
  mucOwner: 'http://jabber.org/protocol/muc#owner', // XEP-0045 §10
  mucUser: 'http://jabber.org/protocol/muc#user', // XEP-0045 §7
  outOfBand: 'jabber:x:oob', // XEP-0066
  ping: 'urn:xmpp:ping', // XEP-0199
  pubsub: 'http://jabber.org/protocol/pubsub', // XEP-0060
  pubsubEvent: 'http://jabber.org/protocol/pubsub#event', // XEP-0060 §7.1.2
  pubsubOwner: 'http://jabber.org/protocol/pubsub#owner', // XEP-0060 §8
  receipts: 'urn:xmpp:receipts', // XEP-0184
  reference: 'urn:xmpp:reference:0', // XEP-0372
  reply: 'urn:xmpp:reply:0', // XEP-0461
  resultSet: 'http://jabber.org/protocol/rsm', // XEP-0059
  roster: 'jabber:iq:roster', // RFC 6121 §2
  stanzaId: 'urn:xmpp:sid:0', // XEP-0359
  streamManagement: 'urn:xmpp:sm:3', // XEP-0198
  upload: 'urn:xmpp:http:upload:0', // XEP-0363
  urlData: 'http://jabber.org/protocol/url-data', // XEP-0103
  vcard: 'vcard-temp', // XEP-0054
} as const;
