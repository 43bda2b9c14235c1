//! The address of the client as a handler sees it, with and without proxies that the gateway trusts.
use serde_json::{Value, json};

use crate::support::{Front, anything, get};

fn front(trusted_proxies: &[&str]) -> Front {
    let front = Front::with(json!({ "trustedProxies": trusted_proxies }));
    front.serve(&front.handler(anything), [get("/any")]);
    front
}

fn echoed(front: &Front, lines: &str) -> Value {
    let response = front.get("/any", lines);
    assert_eq!(response.status, 200, "{lines}: {}", response.text());
    response.json()
}

#[test]
fn a_client_that_is_no_trusted_proxy_has_the_address_of_its_connection_whatever_its_headers_say() {
    for proxies in [&[][..], &["10.0.0.0/8", "127.0.0.2", "::1"]] {
        let front = front(proxies);
        for lines in [
            "",
            "X-Forwarded-For: 192.0.2.1\r\n",
            "Forwarded: for=192.0.2.1\r\n",
            "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n",
        ] {
            assert_eq!(echoed(&front, lines)["client_ip"], "127.0.0.1", "{lines}");
        }
    }
}

#[test]
fn a_client_behind_trusted_proxies_has_the_last_address_that_is_not_one_of_them() {
    let front = front(&["127.0.0.0/8", "10.0.0.0/8", "2001:db8:1::/48"]);
    assert_eq!(echoed(&front, "")["client_ip"], "127.0.0.1", "the proxy says nothing");
    for (addresses, client) in [
        (&["192.0.2.1"][..], "192.0.2.1"),
        (&["192.0.2.1", "10.1.2.3"], "192.0.2.1"),
        // The first one was sent by the client.
        (&["198.51.100.1", "192.0.2.1"], "192.0.2.1"),
        (&["10.9.9.9", "192.0.2.1", "10.1.2.3", "127.0.0.7"], "192.0.2.1"),
        (&["2001:db8:2::1", "2001:db8:1::1"], "2001:db8:2::1"),
        // All are proxies: the first of them.
        (&["10.1.2.3", "10.1.2.4"], "10.1.2.3"),
    ] {
        let quoted = |address: &&str| match address.contains(':') {
            true => format!("for=\"[{address}]\""),
            false => format!("for=\"{address}\""),
        };
        let pairs: Vec<String> = addresses.iter().map(quoted).collect();
        for lines in
            [format!("X-Forwarded-For: {}\r\n", addresses.join(", ")), format!("Forwarded: {}\r\n", pairs.join(", "))]
        {
            assert_eq!(echoed(&front, &lines)["client_ip"], client, "{lines}");
        }
    }
}

#[test]
fn several_headers_of_a_proxy_are_one_list_and_x_forwarded_for_comes_before_forwarded() {
    let front = front(&["127.0.0.0/8", "10.0.0.0/8"]);
    for lines in [
        "X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 192.0.2.1, 10.0.0.1\r\n",
        "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.2\r\n",
    ] {
        assert_eq!(echoed(&front, lines)["client_ip"], "192.0.2.1", "{lines}");
    }
}

#[test]
fn a_handler_gets_the_headers_of_proxies_as_they_are() {
    let front = front(&["127.0.0.0/8"]);
    let headers = &echoed(&front, "X-Forwarded-For: anything, 192.0.2.1\r\nForwarded: for=unknown\r\n")["headers"];
    assert_eq!([&headers["x-forwarded-for"], &headers["forwarded"]], ["anything, 192.0.2.1", "for=unknown"]);
}
