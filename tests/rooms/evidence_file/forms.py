"""Two hundred forms of personal data by kind, and two hundred texts that are none.

Names, numbers and addresses are made up; check digits are right where a kind has some.
"""

from __future__ import annotations

FORMS: dict[str, str] = {
    "mail": """
        lena.fischer@beispiel.de
        o'brien@mail.example.ie
        first.last+tag@sub.domain.example.co.uk
        KARL_77@EXAMPLE.ORG
        x@y.io
        jörg@exämple.de
        user%40host.example@relay.example
        sales-team@example.photography
        a.b.c.d@e.f.g.example
        1234567@qq.example
        nadia@example.com.
        <petra@example.net>
        mailto:tom@example.com
        (ivan@example.ru)
        "quoted" mia@example.fi
        noa%40example.com
        eve&#64;example.com
        lee＠example.com
        pat@[192.0.2.4]
        ann-marie@example-host.example
    """,
    "URL": """
        https://example.com/u/lena?id=7
        http://localhost:8000/admin
        HTTPS://EXAMPLE.ORG/A
        ftp://files.example/x
        www.example.de/kunde/77
        https://user:pass@example.com/
        wss://chat.example/room
        http://198.51.100.7/cam
        https://例え.example/道
        https&#58;//example.com/a
    """,
    "token": """
        eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3NyJ9.dBjftJeZ4CVPmB92K27uhbUJU1p1r
        eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0.eyJpc3MiOiJqb2UifQ.
        sk-proj-9aB3xYz8Qw7Er5Ty2Ui
        sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm
        ghp_16C7e42F292c6912E7710c838347Ae178B4a
        github_pat_11ABCDEFG0abcdefghijkl_mnopqrst
        glpat-x7Yz9Kq2Lm4Np6Rs8Tu0
        xoxb-263594206564-FGqddMF8t08v8N7Oq4i57vs1
        AKIAIOSFODNN7EXAMPLE
        AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe
        SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf
        whsec_5f8a9B3c7D1e2F4g6H8i
        hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345
        Bearer q8Wz3Kp7Lx2Vn9Rt5Yb1Mc4D
        npm_9Xk2Lp8Qw4Rt6Yu1Io3Pa5Sd7Fg0Hj
        password=Qz7kP2mX9vR4tB8nL5wC
        wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
        d2hhdEEyM0I0YzVEOGU5RjBnMUgya0o
        shpat_a1B2c3D4e5F6a7B8c9D0e1F2
        ya29.a0AfH6SMBx7Qw8Er9Ty0Ui1Op2
    """,
    "iban": """
        DE89 3704 0044 0532 0130 00
        DE89370400440532013000
        GB29 NWBK 6016 1331 9268 19
        FR14 2004 1010 0505 0001 3M02 606
        NL91-ABNA-0417-1643-00
        CH9300762011623852957
        ES91 2100 0418 4502 0005 1332
        IT60 X054 2811 1010 0000 0123 456
        at611904300234573201
        PL61109010140000071219812874
        BE68 5390 0754 7034
        SE45.5000.0000.0583.9825.7466
        IBAN:NO9386011117947
        IE29 AIBK 9311 5212 3456 78
        PT50 0002 0123 1234 5678 9015 4
    """,
    "card": """
        5555 5555 5555 4444
        5105105105105100
        3782-822463-10005
        371449635398431
        6011 1111 1111 1117
        6011000990139424
        3530 1113 3330 0000
        4012.8888.8888.1881
        4222222222222
        4000/0566/5566/5556
        5200_8282_8282_8210
        4242 4242 4242 4242.
        card:4000056655665556
        4012 8888 8888 1881
        4012–8888–8888–1881
        4012 · 8888 · 8888 · 1881
        ４０１２８８８８８８８８１８８１
        3056-930902-5904
        6200 0000 0000 0005
        2223 0031 2200 3222
    """,
    "national id": """
        219-09-9999
        457 55 5462
        457.55.5462
        078–05–1120
        AB 12 34 56 C
        QQ123456C
        12345678Z
        12345678-Z
        529.982.247-25
        111.444.777-35
        756.9217.0769.85
        RSSMRA85T10A562S
        2 69 05 49 588 157 80
        269054958815780
        passport no. C01X00T47
        Passport: 533380006
        SSN: 219099999
        ssn 457555462
        national insurance number AB123456C
        NHS number: 9434765919
        DNI: 87654321X
        Steuer-ID 86095742719
        driver's license D1234567
        Reisepass-Nr C01X0006H
        BSN 111222333
        NIE: X1234567L
        tax id 12-3456789
        social security number is 219-09-9999
        CPF 52998224725
        AHV 7569217076985
    """,
    "ip": """
        192.0.2.17
        203.0.113.255
        10.0.0.1
        host 172.16.254.1:8080
        (198.51.100.23)
        255.255.255.255
        2001:db8::1
        2001:0db8:85a3:0000:0000:8a2e:0370:7334
        fe80::1ff:fe23:4567:890a
        ::1
        [2001:db8::ff00:42:8329]
        ::ffff:192.0.2.128
        from 8.8.4.4.
        ip=192.168.1.42
        2001:DB8:0:0:8:800:200C:417A
    """,
    "coordinates": """
        52.5200, 13.4050
        -33.8688, 151.2093
        40.7128 N, 74.0060 W
        48.8566° N, 2.3522° E
        59.3293,18.0686
        52°31'12"N 13°24'18"E
        40° 26' 46" N, 79° 58' 56" W
        lat/lon 35.6762/139.6503
        51.50735 -0.12776
        +19.43260;-99.13320
    """,
    "date of birth": """
        born 12/03/1984
        born on March 3, 1984
        DOB: 1984-03-12
        D.O.B. 12.03.84
        date of birth: 3 May 1991
        birthday is 14 July 1975
        geboren am 12.03.1984
        geb. 1.2.1960
        Geburtsdatum: 7. Mai 1990
        nacido el 5 de junio de 1988
        fecha de nacimiento: 05/06/1988
        née le 14/07/1979
        date de naissance : 2 février 1992
        nata il 3 marzo 1970
        "birthdate": "2001-09-30"
        birth date = 09/30/2001
        data de nascimento: 30/09/2001
        was born 1 January 2000
        Geburtstag 24.12.1999
        dob=2010/01/31
    """,
    "phone": """
        +44 20 7946 0958
        +1 (212) 555-0187
        +49 (0)30 901820
        +33.1.42.68.53.00
        0049 171 1234567
        (212) 555-0143
        212-555-0143
        212.555.0143
        212 555 0143
        1-800-555-0199
        1 (415) 555-0132
        030/9018200
        0171 2345678
        (030) 901 820 00
        01 42 68 53 00
        020 7946 0018
        0161-496-0123
        tel 5550143
        Tel: 040 123456
        phone: 555-0143
        call me at 555 0143
        +81-3-1234-5678
        +5511987654321
        ＋4915112345678
        +91 98765 43210
    """,
    "number": """
        Nr.7654321
        order 88123
        Kundennummer 4711007
        #20391
        account: 00123456
        No.5550
        room 2044
        (90210)
        PIN 9921
        ref=776655
    """,
    "id": """
        AB-1234
        ticket-77a
        K9X2
        INV2024-001
        user_42
    """,
}

NONE: dict[str, str] = {
    "versions": """
        1.2.3
        v2.10.0-rc.1
        Django 5.2.4
        version 1.2.3.4
        python3.11
        v10.0.19045.3448
        gpt-4o-2024-08-06
        claude-3-5-sonnet-20241022
        release 2.0.1.7
        ^18.2.0
        >=3.9,<4.0
        1.0.0+build.5
        ~2.4
        Firefox/121.0
        jdk-21.0.2
        2024.1.2
        RFC 9110
        ISO 8601
        HTTP/1.1
        utf-8
    """,
    "hashes": """
        d41d8cd98f00b204e9800998ecf8427e
        da39a3ee5e6b4b0d3255bfef95601890afd80709
        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
        a1b2c3d
        commit 9fceb02d0ae598e95dc970b74767f19372d61af8
        sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
        0xdeadbeef
        crc32 cbf43926
        #ff8800
        etag "33a64df551425fcc"
        0x7fffffffffffffff
        5d41402abc4b2a76b9719d911017c592
        md5=900150983cd24fb0d6963f7d28e17f72
        deadbeefdeadbeefdeadbeefdeadbeef
        FFFFFFFFFFFFFFFFFFFF
        index 83db48f..bf269f4 100644
        blake2 786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419
        00000000
        cafe:babe
        git describe g1a2b3c4
    """,
    "UUIDs": """
        550e8400-e29b-41d4-a716-446655440000
        f47ac10b-58cc-4372-a567-0e02b2c3d479
        6BA7B810-9DAD-11D1-80B4-00C04FD430C8
        00000000-0000-0000-0000-000000000000
        urn:uuid:123e4567-e89b-12d3-a456-426614174000
        {936DA01F-9ABD-4D9D-80C7-02AF85C822A8}
        018f3f2e-7b3a-7c1d-9c6e-0123456789ab
        id=7d444840-9dc0-11d1-b245-5ffdce74fad2
        3f333df6-90a4-4fda-8dd3-9485d27cee36
        c9bf9e57-1685-4c89-bafb-ff5af830be8a
    """,
    "times": """
        12:30:45
        2026-11-28T09:30:00Z
        2026-11-28 09:30
        09:30-11:40
        14:05:09.123456
        3 May 2026
        28.11.2026
        11/28/2026
        Mon, 28 Nov 2026 09:30:00 GMT
        PT1H30M
        1 h 20 min
        00:00
        week 48 of 2026
        Q3 2025
        from 1999 to 2004
        20261128
        1764322200
        +02:00
        T+00:15:30
        23:59:59,999
    """,
    "sizes": """
        1,024 bytes
        3.14159
        12.5 kB
        1920x1080
        600 dpi
        99.9 %
        $1,234.56
        1.234,56 €
        10,000 messages
        128000 tokens
        16 GB
        2.5e-10
        -273.15 °C
        1/3
        42
        100 000
        4096
        0.0001
        3,000,000
        65536
    """,
    "code": """
        for i in range(100):
        x[3:10:2]
        std::vector<int>
        a::b
        fn main() -> Result<(), Error>
        SELECT * FROM t WHERE id = 7
        if (a < b && c > d)
        printf("%d\\n", 42)
        #include <stdio.h>
        dict[str, list[int]]
        @property
        user@host
        git@
        path/to/file.py:120
        C:\\Windows\\System32
        /usr/local/lib/python3.11
        s/[0-9]+/N/g
        ^[a-z]{2,4}$
        --max-tokens=4096
        {"count": 12, "ok": true}
    """,
    "words": """
        The parcel was seen in Porto.
        supercalifragilisticexpialidocious
        Donaudampfschifffahrtsgesellschaft
        in the year of birth
        she was born in Porto
        a born leader of 12 people
        passport control is closed
        my phone is broken
        the token expired
        ip address unknown
        see chapter 12, page 345
        internationalization_of_the_application
        CONFIGURATION_OF_THE_ENVIRONMENT
        call me at noon
        national parks of the world
        Steuerberatung
        social security is a system
        card declined
        mail me tomorrow
        the coordinates are wrong
        Wie geht es Ihnen?
        ¿Dónde está mi pedido?
        我的包裹在哪里？
        меня зовут никак
        what about the IBAN
        birthday party on Friday
        www is the web
        https is safer than http
        at sign @ alone
        1st 2nd 3rd
    """,
    "numbers of things": """
        flight LH 454
        B-52
        A4 paper
        route 66
        section 4.1.2.3.5
        12-34-56
        100-200-300
        5-3-1
        score 21:19
        1.5 x 2.5 x 3.5
        555
        10-20 pieces
        0-0-0
        page 12 of 345
        ratio 16:9
        7 of 9
        24/7
        50/50
        3.5.1.1.1
        1-2-3-4-5-6-7-8
        model T-800
        area 51
        IPv4 and IPv6
        size 38-40
        112
        911
        4-4-2
        8.5/10
        90210-90215 range
        000-00-0000
        999-99-9999
        666-12-3456
        1234 5678 9012 3456
        4111 1111 1111 1112
        1111111111111111
        DE00 0000 0000 0000 0000 00
        GB00ABCD12345678901234
        256.300.1.2
        1.2.3.4.5.6
        12345678A
        111.111.111-11
        91.5, 200.25
        95.1234, 13.4050
        48.85, 2.35
        12.5, 13.5
        x = 0.123, y = 0.456 px
        12 000 000
        Lot 4-2026
        0.5.0
        ::
        ...
        1::2::3
        12:34:56:78:9a:bc
        3 + 4 = 7
        (12) 34
        2 x (3 + 4)
        M8 x 30
        60 fps
        4 out of 5
        No. 5
    """,
}
ON_REQUEST = ("number", "id")  # kinds that are whatever looks like a number or a code


def listed(lines: str) -> list[str]:
    return [line.strip() for line in lines.splitlines() if line.strip()]
