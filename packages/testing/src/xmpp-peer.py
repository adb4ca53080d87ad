#!/usr/bin/python3
"""The other side of a chat, by another implementation of XMPP than the one under test (python3-slixmpp).

Driven by lines of JSON: a request on standard input is {"ask", "do", ...}, its answer on standard output {"ask",
"result"} or {"ask", "error"}; whatever the network sends appears in between as {"event", ...}. Ends with its input.
"""
import asyncio
import hashlib
import json
import sys
import urllib.request
import xml.etree.ElementTree as ET

import slixmpp
from slixmpp.exceptions import IqError, IqTimeout
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

CLIENT = 'jabber:client'
NS = {
    'oob': 'jabber:x:oob',
    'sfs': 'urn:xmpp:sfs:0',
    'file': 'urn:xmpp:file:metadata:0',
    'hashes': 'urn:xmpp:hashes:2',
    'url': 'http://jabber.org/protocol/url-data',
    'receipts': 'urn:xmpp:receipts',
    'markers': 'urn:xmpp:chat-markers:0',
    'sid': 'urn:xmpp:sid:0',
    'reply': 'urn:xmpp:reply:0',
    'fallback': 'urn:xmpp:fallback:0',
    'reference': 'urn:xmpp:reference:0',
    'correct': 'urn:xmpp:message-correct:0',
    'states': 'http://jabber.org/protocol/chatstates',
    'conference': 'jabber:x:conference',
    'call': 'urn:xmpp:jingle-message:0',
    'delay': 'urn:xmpp:delay',
    'upload': 'urn:xmpp:http:upload:0',
}


def say(line):
    sys.stdout.write(json.dumps(line) + '\n')
    sys.stdout.flush()


def attributes(element):
    return None if element is None else dict(element.attrib)


def tag(prefix, name):
    return '{%s}%s' % (NS[prefix], name)


def text_of(element, path):
    found = element.find(path)
    return None if found is None else found.text


def children_of(xml, prefix):
    """The names of the children in a namespace, without it."""
    start = '{%s}' % NS[prefix]
    return [child.tag[len(start):] for child in xml if child.tag.startswith(start)]


def shared_file(xml):
    sharing = xml.find(tag('sfs', 'file-sharing'))
    if sharing is None:
        return None
    file = sharing.find(tag('file', 'file'))
    source = sharing.find('%s/%s' % (tag('sfs', 'sources'), tag('url', 'url-data')))
    return {
        'disposition': sharing.get('disposition'),
        'mediaType': text_of(file, tag('file', 'media-type')),
        'name': text_of(file, tag('file', 'name')),
        'size': text_of(file, tag('file', 'size')),
        'length': text_of(file, tag('file', 'length')),
        'hash': text_of(file, tag('hashes', 'hash')),
        'algo': attributes(file.find(tag('hashes', 'hash'))).get('algo'),
        'url': source.get('target'),
    }


def message_event(message):
    xml = message.xml
    error = xml.find('{%s}error' % CLIENT)
    call = [child for child in xml if child.tag.startswith('{%s}' % NS['call'])]
    return {
        'event': 'message',
        'from': xml.get('from'),
        'to': xml.get('to'),
        'type': xml.get('type') or 'normal',
        'id': xml.get('id'),
        'body': text_of(xml, '{%s}body' % CLIENT),
        'oob': text_of(xml, '%s/%s' % (tag('oob', 'x'), tag('oob', 'url'))),
        'file': shared_file(xml),
        'receiptAsked': xml.find(tag('receipts', 'request')) is not None,
        'received': (attributes(xml.find(tag('receipts', 'received'))) or {}).get('id'),
        'markable': xml.find(tag('markers', 'markable')) is not None,
        'displayed': (attributes(xml.find(tag('markers', 'displayed'))) or {}).get('id'),
        'originId': (attributes(xml.find(tag('sid', 'origin-id'))) or {}).get('id'),
        'stanzaId': (attributes(xml.find(tag('sid', 'stanza-id'))) or {}).get('id'),
        'reply': attributes(xml.find(tag('reply', 'reply'))),
        'fallback': [
            {'for': found.get('for'), **attributes(found.find(tag('fallback', 'body')))}
            for found in xml.findall(tag('fallback', 'fallback'))
        ],
        'references': [attributes(found) for found in xml.findall(tag('reference', 'reference'))],
        'replace': (attributes(xml.find(tag('correct', 'replace'))) or {}).get('id'),
        'states': children_of(xml, 'states'),
        'invite': attributes(xml.find(tag('conference', 'x'))),
        'call': {'name': children_of(xml, 'call')[0], 'id': call[0].get('id'),
                 'inside': [child.tag for child in call[0]]} if call else None,
        'error': None if error is None else [child.tag.split('}')[1] for child in error],
        'delayed': xml.find(tag('delay', 'delay')) is not None,
    }


def presence_event(presence):
    return {
        'event': 'presence',
        'from': presence.xml.get('from'),
        'type': presence.xml.get('type') or 'available',
        'show': text_of(presence.xml, '{%s}show' % CLIENT),
        'error': [child.tag.split('}')[1] for child in presence.xml.findall('{%s}error/*' % CLIENT)],
    }


class Peer(slixmpp.ClientXMPP):
    def __init__(self, jid, password, acknowledges):
        super().__init__(jid, password)
        for number in ('0004', '0030', '0045', '0054', '0060', '0066', '0085', '0191', '0249', '0308', '0199',
                       '0333', '0353', '0441'):
            self.register_plugin('xep_' + number)
        self.register_plugin('xep_0184', {'auto_ack': acknowledges})
        self.add_event_handler('session_start', self.begin)
        self.add_event_handler('failed_auth', lambda _: say({'event': 'failed'}))
        self.register_handler(Callback(
            'every message', MatchXPath('{%s}message' % CLIENT), lambda message: say(message_event(message))))
        self.register_handler(Callback(
            'every presence', MatchXPath('{%s}presence' % CLIENT), lambda presence: say(presence_event(presence))))

    async def begin(self, _):
        await self.get_roster()
        self.send_presence()
        say({'event': 'ready', 'jid': self.boundjid.full})

    # What a test may ask for: each method takes the request's other fields.

    async def text(self, to, body, kind='chat', id=None, receipt=False, markable=False, replace=None):
        message = self.make_message(mto=to, mbody=body, mtype=kind)
        message['id'] = id or self.new_id()
        if receipt:
            message['request_receipt'] = True
        if markable:
            message.enable('markable')
        if replace:
            message['replace']['id'] = replace
        message.send()
        return message['id']

    async def forge(self, stanza):
        """Anything at all, as somebody would who means harm."""
        self.send_raw(stanza)

    async def round_trip(self):
        """Whatever the server had to say to what was sent before has come when this ends."""
        await self.plugin['xep_0199'].send_ping(self.boundjid.host)

    async def voice(self, to, path, kind='chat'):
        url = await self.share(path)
        message = self.make_message(mto=to, mbody=url, mtype=kind)
        message['oob']['url'] = url
        message['request_receipt'] = True
        message.send()
        return {'id': message['id'], 'url': url}

    async def share(self, path):
        """XEP-0363 by hand: the plugin needs a package for HTTP that Debian does not bring with slixmpp."""
        with open(path, 'rb') as file:
            data = file.read()
        iq = self.make_iq_get(ito='share.' + self.boundjid.host)
        iq.append(ET.Element('{%s}request' % NS['upload'], {
            'filename': 'voice.ogg', 'size': str(len(data)), 'content-type': 'audio/ogg'}))
        slot = (await iq.send()).xml.find(tag('upload', 'slot'))
        place = slot.find(tag('upload', 'put'))
        headers = {header.get('name'): header.text for header in place}
        await asyncio.get_running_loop().run_in_executor(None, put, place.get('url'), data, headers)
        return slot.find(tag('upload', 'get')).get('url')

    async def receipt(self, to, id):
        message = self.make_message(mto=to, mtype='chat')
        message['receipt'] = id
        message.send()

    async def marker(self, to, id, name='displayed', kind='chat'):
        self.plugin['xep_0333'].send_marker(to, id, name)

    async def state(self, to, name):
        message = self.make_message(mto=to, mtype='chat')
        message['chat_state'] = name
        message.send()

    async def call(self, to, id):
        self.plugin['xep_0353'].propose(to, id, [('urn:xmpp:jingle:apps:rtp:1', 'audio')])

    async def hang_up(self, to, id):
        self.plugin['xep_0353'].retract(to, id)

    async def download(self, url, path):
        return await asyncio.get_running_loop().run_in_executor(None, fetch, url, path)

    async def join(self, room, nick, password=''):
        self.plugin['xep_0045'].join_muc(room, nick, password=password)

    async def configure(self, room, fields):
        form = self.plugin['xep_0004'].make_form(ftype='submit')
        form.add_field('FORM_TYPE', 'hidden', value='http://jabber.org/protocol/muc#roomconfig')
        for name, value in fields.items():
            form.add_field(name, value=value)
        await self.plugin['xep_0045'].set_room_config(room, form)

    async def affiliate(self, room, jid, affiliation):
        await self.plugin['xep_0045'].set_affiliation(room, jid=jid, affiliation=affiliation)

    async def invite(self, to, room, password=None, reason=None):
        self.plugin['xep_0249'].send_invitation(to, room, password=password, reason=reason)

    async def subscribe(self, to):
        self.send_presence(pto=to, ptype='subscribe')

    async def approve(self, to):
        self.send_presence(pto=to, ptype='subscribed')

    async def rename(self, jid, name):
        self.update_roster(jid, name=name)

    async def name_card(self, name):
        card = self.plugin['xep_0054'].make_vcard()
        card['FN'] = name
        await self.plugin['xep_0054'].publish_vcard(card)

    async def publish(self, node, item, payload, options):
        form = self.plugin['xep_0004'].make_form(ftype='submit')
        form.add_field('FORM_TYPE', 'hidden', value='http://jabber.org/protocol/pubsub#publish-options')
        for name, value in options.items():
            form.add_field(name, value=value)
        await self.plugin['xep_0060'].publish(
            self.boundjid.bare, node, id=item, payload=ET.fromstring(payload), options=form)

    async def archive_preference(self, default):
        await self.plugin['xep_0441'].set_preferences(default=default)

    async def leave(self):
        self.disconnect()


# Proxy variables of the surroundings must not send a request elsewhere.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def put(url, data, headers):
    request = urllib.request.Request(url, data, {**headers, 'Content-Type': 'audio/ogg'}, method='PUT')
    opener.open(request, timeout=20).close()


def fetch(url, path):
    with opener.open(url, timeout=20) as answer:
        data = answer.read()
        kind = answer.headers['Content-Type']
    with open(path, 'wb') as file:
        file.write(data)
    digest = hashlib.sha256(data)
    return {'sizeBytes': len(data), 'contentType': kind, 'sha256': digest.hexdigest()}


async def serve(peer):
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running = set()
    while line := await reader.readline():
        # A task that nobody holds may be collected before it ends.
        task = asyncio.create_task(answer(peer, json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)


async def answer(peer, request):
    number, do = request.pop('ask'), request.pop('do')
    try:
        say({'ask': number, 'result': await getattr(peer, do)(**request)})
    except IqError as error:
        say({'ask': number, 'error': error.condition})
    except IqTimeout:
        say({'ask': number, 'error': 'timeout'})
    except Exception as error:  # told to the test, which fails by it
        say({'ask': number, 'error': repr(error)})


async def main():
    setting = json.loads(sys.argv[1])
    peer = Peer(setting['jid'], setting['password'], setting.get('acknowledges', False))
    peer.connect(('127.0.0.1', setting['port']), disable_starttls=True, force_starttls=False)
    await serve(peer)


if __name__ == '__main__':
    asyncio.get_event_loop().run_until_complete(main())
