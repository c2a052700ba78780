"""Who may open a room, come in, speak and listen there."""

import pytest
from starlette.websockets import WebSocketDisconnect

from dragoman.serve.protocol import (
    Error,
    Listen,
    Speak,
    Start,
    Stop,
    write,
)
from dragoman.serve.protocol import Room as RoomEvent
from dragoman.serve.room_keys import Keys, Role, new_room
from tests.serve.clients import Client, closed, silence
from tests.serve.guests import TOKEN, Listener, attends, listens, open_room, speaks


@pytest.mark.parametrize(
    "message",
    [silence(0), write(Start()), write(Stop()), write(Listen()), '{"type": "shout"}', "no json"],
)
def test_listeners_send_nothing_but_wishes(opened, message):
    _, web = opened()
    room = open_room(web)
    with attends(web, room) as listener:
        if isinstance(message, bytes):
            listener.socket.send_bytes(message)
        else:
            listener.socket.send_text(message)
        assert closed(listener) == 4400
    assert isinstance(listener.events[-1], Error)
    assert listener.events[-1].code == "malformed"


def test_a_listener_with_a_thousand_wishes_is_sent_away(opened, monkeypatch):
    monkeypatch.setattr("dragoman.serve.listening._WISHES", 3)
    _, web = opened()
    room = open_room(web)
    with attends(web, room) as listener:
        for _ in range(3):
            listener.send(Speak())
        assert closed(listener) == 4400


def test_tokens_open_what_they_are_for(opened):
    service, web = opened(token=TOKEN)
    room, other = open_room(web, TOKEN), open_room(web, TOKEN)
    listener, speaker = room["listener_token"], room["speaker_token"]
    wrong = (None, "", "guessed", other["listener_token"], TOKEN)
    for token in (*wrong, other["speaker_token"]):
        with listens(web, room) as ear:
            client = Client(ear)
            client.send(Listen(access_token=token))
            assert client.next().code == "token"
            assert closed(client) == 4401
    for token in (*wrong, other["speaker_token"], listener):
        with speaks(web, room) as mouth:
            client = Client(mouth)
            client.send(Start(access_token=token))
            assert client.next().code == "token"
            assert closed(client) == 4401
    for token in (listener, speaker):
        with listens(web, room) as ear:
            client = Client(ear)
            client.send(Listen(access_token=token))
            assert isinstance(client.next(), RoomEvent)
    assert service.streams == 0


def test_a_token_of_a_room_does_not_open_the_server(opened):
    _, web = opened(token=TOKEN)
    room = open_room(web, TOKEN)
    for name in ("speaker_token", "listener_token"):
        headers = {"Authorization": f"Bearer {room[name]}"}
        assert web.post("/v1/rooms", headers=headers).status_code == 401
        assert web.get("/metrics", headers=headers).status_code == 401


def test_who_has_no_token_opens_no_room(opened):
    _, web = opened(token=TOKEN)
    assert web.post("/v1/rooms").status_code == 401
    assert web.get("/v1/rooms", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 405


def test_pages_of_others_open_no_room_and_enter_none(opened, caplog):
    caplog.set_level("INFO")
    _, web = opened()
    room = open_room(web)
    foreign = {"Origin": "http://elsewhere.example"}
    answer = web.post("/v1/rooms", headers=foreign)
    assert (answer.status_code, "another site's" in answer.text) == (403, True)
    for way in ("listen", "speak"):
        path = f"/v1/rooms/{room['room']}/{way}"
        with (
            pytest.raises(WebSocketDisconnect),
            web.websocket_connect(path, headers=foreign),
        ):
            pass
    told = {"code": "origin", "origin": "http://elsewhere.example", "host": "testserver"}
    refused = [one.values for one in caplog.records if one.getMessage() == "refused"]
    assert refused == [told] * 3  # a browser does not say why, so the log does
    assert 'dragoman_refused_total{code="origin"} 3.0' in web.get("/metrics").text


@pytest.mark.parametrize("name", ["x", "ABCDEFGH", "abcdefg1", "abcdefghi"])
def test_what_is_no_name_of_a_room_is_refused_in_words(opened, name):
    """As a wrong token is: a page that is told no more than a 403 would come again for ever."""
    service, web = opened()
    for way, message in (("listen", Listen(access_token="x")), ("speak", Start(access_token="x"))):
        with web.websocket_connect(f"/v1/rooms/{name}/{way}") as socket:
            client = Client(socket)
            client.send(message)
            assert client.next().code == "token"
            assert closed(client) == 4401
    assert service.rooms.listeners == 0


def test_a_path_is_no_room(opened):
    service, web = opened()
    with pytest.raises(WebSocketDisconnect), web.websocket_connect("/v1/rooms/..%2f..%2f/listen"):
        pass
    assert service.rooms.listeners == 0


def test_seats_are_counted_and_given_back(opened):
    service, web = opened(listeners=2)
    room, other = open_room(web), open_room(web)
    with listens(web, room) as one, listens(web, other) as two:
        Listener(one).come_in(room)
        Listener(two).come_in(other)
        assert service.rooms.listeners == 2
        assert "dragoman_listeners 2.0" in web.get("/metrics").text
        with listens(web, room) as three:
            late = Listener(three)
            assert late.come_in(room).code == "full"
            assert closed(late) == 1013
    with listens(web, room) as three:
        assert Listener(three).come_in(room).state == "waiting"


@pytest.mark.parametrize("secret", [None, "a secret that processes share"])
def test_processes_with_the_same_access_token_and_secret_agree(secret):
    """Who knows the secret alone opens no room of a server that wants a token."""
    one, two, other = Keys(secret, TOKEN), Keys(secret, TOKEN), Keys(secret, TOKEN + "!")
    alone, too = Keys(secret), Keys(None)
    made = one.token("abcdefgh", Role.LISTENER)
    assert two.admits("abcdefgh", Role.LISTENER, made)
    for keys in (other, alone, too):
        assert not keys.admits("abcdefgh", Role.LISTENER, made)
    assert not one.admits("abcdefgj", Role.LISTENER, made)
    assert not one.admits("abcdefgh", Role.SPEAKER, made)
    assert len({one.token("abcdefgh", role) for role in Role}) == len(Role)
    assert TOKEN not in made


def test_names_are_new_and_are_names():
    names = {new_room() for _ in range(200)}
    assert len(names) == 200
    assert all(len(name) == 8 and name.isascii() and name.isalnum() for name in names)
