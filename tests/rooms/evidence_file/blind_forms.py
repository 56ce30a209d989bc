"""Sentences with personal data and sentences without, which somebody wrote who had not read the
patterns. `[[…]]` is around what must be masked. Names and numbers are made up.
"""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "mail": """
        You can write to [[marta.nowak@poczta.example.pl]] any time.
        mailto:[[support+eu@firm-name.example.com]]?subject=Hi
        From: Jo <[[jo_77@uni-example.edu]]>
        my mail is [[K.M@EXAMPLE.CO.NZ]], thanks
        cc [[1984.lena@post.example]]
        reply to [[billing@sub-1.sub2.example.travel]]!
        ([[andré@example.fr]])
        [[x@example.io]] is the short one
        {"email": "[[ana-maria@correo.example.mx]]"}
        contact=[[per.olsen@bedrift.example.no]];
        <a href='mailto:[[q.z@example.org]]'>write</a>
        [[info@müller.example]]
        (write: [[office@kancelaria.example.pl]])
        [[z.k+news@a.example]], b@c.example
    """,
    "address of a site": """
        See [[https://portal.example.com/patients/8812/record]].
        [[ftp://files.example.net/home/anna]]
        his page is [[www.example.org/~jonas]]
        [[http://10.1.2.3:9000/me?user=kim]]
        [profile]([[https://social.example/@emma]])
        open '[[https://example.com/#/u/42]]' now
        git@ [[https://gitlab.example/anna/notes.git]]
    """,
    "token": """
        Authorization: Bearer [[qW8rT2yU5iO9pA3sD6fG1hJ4kL7zX0cV]]
        export OPENAI_API_KEY=[[sk-T3stK3yAbCdEfGhIjKlMnOpQrStUv]]
        the key is [[ghp_q7W2e9R4t6Y1u8I3o5P0aSdFgHjKlZxCvB12]]
        [[AKIAQ3EGRT7YUIOPLKJH]] is in the log
        [[glpat-x9Y8z7W6v5U4t3S2r1Q0]]
        [[xoxb-123456789012-abcdefGHIJKLmnopqr]]
        password: [[Tr0ub4dor&3x!Zq]]
        [[eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.eyJuYW1lIjoiS2ltIn0.MEUCIQDx3gL2s9aQ]]
        stripe [[sk_live_51HxYzAbCdEfGhIjKlMnOp]]
        [[AIzaSyD4x7Q9w2E5r8T1y3U6i0O9pLkJhGfDsA]]
        token=[[npm_4fG7hJ2kL9mN3bV6cX1zQ8wE5rT0yUiOpAsD]]
        [[hf_QwErTyUiOpAsDfGhJkLzXcVbNm1234]]
        client_secret=[[7Jd83kLs0Qp2Zx6VbN4mWq9Ty1Ue5Ri]]
        sessionid=[[k3j5h2g8f9d0s7a1q4w6e2r5t8y0u3i9]]
        postgres://shop:[[Hx72kLpQ]]@db.example.com/shop
        [[sk-ant-api03-Zk3Lm9Qp-7Rt2Yx_5Vb8Nw1Hj4]]
        api_key: '[[p9Q2w7E4r1T8y5U3]]'
        Cookie: sid=[[Zm9vYmFyMTIzNDU2Nzg5MHF3ZXJ0eQ==]]
        the passphrase is [[hunter2!9x]]
        [[SG.x1Y2z3A4b5C6d7E8f9G0.h1I2j3K4l5M6n7O8]]
    """,
    "iban": """
        Pay to [[PL61 1090 1014 0000 0712 1981 2874]] please
        IBAN: [[IT60X0542811101000000123456]]
        [[SE45 5000 0000 0583 9825 7466]]
        [[ch93 0076 2011 6238 5295 7]]
        konto [[NO93-8601-1117-947]]
        [[FI21 1234 5600 0007 85]]
        [[BE68539007547034]] is hers
        [[PT50 0002 0123 1234 5678 9015 4]]
        [[TR330006100519786457841326]]
        [[AT61\u00a01904\u00a03002\u00a03457\u00a03201]]
        [[LV97HABA0012345678910]]
        IBAN [[DK50 0040 0440 1162 43]].
    """,
    "card": """
        My Visa is [[4012 8888 8888 1881]].
        card [[6011000990139424]] exp 09/27
        Amex [[3714 496353 98431]]
        [[4222-2222-2222-2220]] was charged
        [[2223.0031.2200.3222]]
        Diners [[30569309025904]]
        JCB [[3530 1113 3330 0000]]
        [[5105/1051/0510/5100]]
        [[4000_0566_5566_5556]]
        number:[[5200828282828210]],cvc:123
        the card [[4917 6100 0000 0000]] is blocked
        [[4 0 1 2 8 8 8 8 8 8 8 8 1 8 8 1]]
        [[6759649826438453]] (Maestro)
        [[4012–8888–8888–1881]]
        Karte: [[5425233430109903]]
    """,
    "national id": """
        SSN [[536-22-8145]]
        my social security number is [[601 44 9023]]
        social security: [[412557398]]
        NI number [[JG 10 37 59 A]]
        National Insurance: [[AB123456C]]
        Steuer-ID [[86 095 742 719]]
        Steueridentifikationsnummer: [[47036892816]]
        Sozialversicherungsnummer [[65 170839 J 008]]
        numéro de sécurité sociale [[2 55 08 14 168 025 38]]
        NIR: [[1 84 12 76 451 089 46]]
        codice fiscale [[RSSMRA85T10A562S]]
        DNI [[12345678Z]]
        su NIE es [[X1234567L]]
        CPF [[529.982.247-25]]
        PESEL [[44051401359]]
        BSN: [[111222333]]
        personnummer [[811228-9874]]
        henkilötunnus [[131052-308T]]
        CPR [[070761-4285]]
        AHV [[756.9217.0769.85]]
        Aadhaar [[2341 2341 2346]]
        PAN card [[ABCPE1234F]]
        my SIN is [[046 454 286]]
        TFN [[123 456 782]]
        passport no. [[C01X00T47]]
        Reisepass [[C4VH8KJ7P]]
        passport number: [[530912684]]
        driver's license [[D1234562]]
        身份证 [[11010519491231002X]]
        NHS number [[943 476 5919]]
        RG [[24.678.131-4]]
        CURP [[HEGG560427MVZRRL04]]
        Personalausweis [[L01X00T471]]
        nº de la seguridad social [[28 12345678 40]]
        CNP [[1850505123456]]
        rodné číslo [[855212/1234]]
        TC Kimlik No: [[10000000146]]
        my ID card number is [[8001015009087]]
        IČ / tax id [[48-7654321]]
        SSN: [[219099999]]
    """,
    "ip": """
        logged in from [[198.51.100.42]] at noon
        client [[172.16.254.1]]:52144 closed
        the host [[[2001:db8:85a3::8a2e:370:7334]]]:443
        [[fe80::1ff:fe23:4567:890a]]%eth0
        X-Forwarded-For: [[203.0.113.9]], 70.41.3.18
        ip=[[8.8.4.4]];
        [[2001:0db8:0000:0000:0000:ff00:0042:8329]]
        ::ffff:[[192.0.2.128]]
        block [[100.64.0.0]]/10
        [[2001:db8::1]] answered
        ping [[192.0.2.200]] -c 3
        [[2a02:8109:9a40::c3d2]] joined
    """,
    "coordinates": """
        I am at [[48.8584, 2.2945]] now
        lat: [[59.9139 lon: 10.7522]]
        geo:[[37.786971,-122.399677]]
        meet me at [[51°30'26"N 0°7'39"W]]
        [[41.40338 N, 2.17403 E]]
        {"latitude": [[-23.5505]], "longitude": -46.6333}
        maps?q=[[35.6895,139.6917]]
        ([[64.1466, -21.9426]])
        position [[60.1699N 24.9384E]]
        Lat [[40.4168]], Long -3.7038
    """,
    "date of birth": """
        I was born on [[7 July 1991]].
        DOB [[1990-11-02]]
        date of birth: [[23.04.1967]]
        geboren am [[5. März 1972]]
        Geburtsdatum [[14.08.1988]]
        né le [[3 février 1959]]
        fecha de nacimiento: [[09/12/1979]]
        nata il [[21 giugno 1984]]
        my birthday is [[September 30th, 1995]]
        birthdate=[[19820517]]
        data de nascimento [[02/02/2001]]
        she was born in [[May 1969]]
        geboortedatum [[11-10-1977]]
        生年月日 [[1985年4月12日]]
        born: [[Feb. 4, 2003]]
        birth date [[1/9/54]]
        geb. [[01.02.1963]]
        urodzony [[3 maja 1980]]
        d.o.b. [[04-07-1999]]
        patient, born [[1948]]
    """,
    "phone": """
        Ring me on [[07700 900461]]
        [[+1-202-555-0143]]
        [[(415) 555-2671]]
        [[415.555.2671]] after six
        tel:[[+4930901820]]
        Telefon [[030/901820]]
        [[0171-2345678]]
        [[+33 1 70 18 99 00]]
        [[06 39 98 12 34]]
        [[+39 06 6982]]
        mobile [[9820012345]]
        [[+91 98200 12345]]
        [[00 44 20 7946 0123]]
        call [[1-800-555-0199]] ext. 22
        [[+55 (11) 91234-5678]]
        [[03-1234-5678]]
        [[+81 90-1234-5678]]
        [[555 0172]] is my landline phone
        my number is [[2025550187]]
        Handy: [[0151 / 123 456 78]]
        [[+46 8 123 456 78]]
        [[(02) 9876 5432]]
        telefoon [[020-7947614]]
        WhatsApp [[+34 612 34 56 78]]
        [[+48 601-234-567]]
        (0)[[20 7946 0958]]
        fax [[+41 44 668 18 00]]
        [[+7 (495) 123-45-67]]
        [[010-1234-5678]]
        [[+86 138 0013 8000]]
        Tel. [[(089) 1234567]]
        telefono [[333 1234567]]
        text me: [[917.555.0163]]
        [[+353 85 012 3456]]
        [[0049 151 23456789]]
        Mob: [[07911-123456]]
        phone=[[2125550199]]
    """,
    "number": """
        your order [[4471902]] has shipped
        Rechnung Nr. [[20260817]]
        invoice #[[88120]]
        member no [[1020304]]
        customer [[55821]]
        case number: [[7719]]
        Vertragsnummer [[6001234567]]
        commande n°[[123456]]
    """,
    "id": """
        ticket [[SUP-4412]]
        booking ref [[X7QK2P]]
        plate M-[[AB 1234]]
        order [[A-20931]]
        user [[u_8fk2]]
        PNR [[K3L9ZT]]
        policy number [[HUK-77812-B]]
        parcel [[1Z999AA10123456784]]
        vehicle [[WVWZZZ1JZXW000001]]
    """,
}

OTHERS: dict[str, str] = {
    "versions": """
        Upgrade to 3.12.4 first.
        node v20.11.1
        postgres 16.3-1.pgdg120+1
        numpy>=1.26,<2.1
        chrome/126.0.6478.127
        kernel 6.8.0-45-generic
        requires-python = '>=3.11'
        v0.0.0-20240102150405
        log4j 2.17.1
        Build 22631.3737
        java 1.8.0_392
        1.0.0-beta.11
        openssl 3.0.13
        macOS 14.5
        PHP 8.3.8 (cli)
        api version 2024-10-21
        glibc 2.39
        TLSv1.3
        Release 24.04 LTS
        version 10.15.7 is old
    """,
    "hashes": """
        commit 9fceb02d0ae598e95dc970b74767f19372d61af8
        sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
        md5 900150983cd24fb0d6963f7d28e17f72
        at 4f2b8c1
        etag "33a64df551425fcc55e4d42a148795d9f25f89d4"
        0xdeadbeef
        crc 3610a686
        index e69de29..d95f3ad 100644
        tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
        checksum: a9993e364706816aba3e25717850c26c9cd0d89d
        blake2 ba80a53f981c4d0d
        digest c0535e4b
    """,
    "UUIDs": """
        id 123e4567-e89b-12d3-a456-426614174000
        {9F2B1C3D-4E5F-4A6B-8C7D-0E1F2A3B4C5D}
        urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66
        req 018f4e3a-7c1d-7b2a-9f3e-5d6c7b8a9f01
        trace 7c9e6679-7425-40de-944b-e07fc1f90ae7 ended
        volume pvc-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9
    """,
    "times": """
        The meeting is at 14:30 on Friday.
        2025-12-31T23:59:59.999+01:00
        from 08:15:00 to 09:45:00
        on 3 October 2026
        10/28/2026 5:06 PM
        every 15 min
        Q3 2027
        the 90s
        1999 was warm
        due 2026-12-01
        created_at: 1767225600
        took 00:01:37.250
        week 48
        12. Januar 2027, 9 Uhr
        2h 35m 10s
        Mon, 02 Nov 2026 10:00:00 GMT
        1732800000000
        open 9-17, closed 12-13
        in 20 years
        20261128T101500Z
    """,
    "sizes": """
        1 048 576 bytes
        2,147,483,647 is the largest
        a 4096 x 2160 screen
        3.141592653589793
        12,345.67 kg
        6.022e23
        100 000 000 rows
        0.000123
        1.5 TB
        -273.15 °C
        98.6 F
        1/3 cup
        5 x 5 x 12 cm
        16:9
        80 %
        +12.5 points
        12 V, 2.5 A
        100,000.00 EUR
        1.234.567,89 €
        65,535 ports
        scale 1:25000
        40 × 30 mm
    """,
    "code": """
        matrix[12][345] = 0.5
        rgb(255, 128, 0)
        #ff8800
        color: #1e90ff;
        git rebase -i HEAD~3
        SELECT * FROM t LIMIT 100 OFFSET 2000
        x = 1234567890 % 97
        chmod 0755 run.sh
        port 8080
        localhost
        array([1.5, 2.5, 3.5])
        translate(10.5, 20.25)
        HTTP 404
        exit code 137
        np.linspace(0, 1, 1000)
        a::b::c
        std::map<int, int>::iterator
        cp -r a/b/c d/e
        \\u00e9
        @property
        foo@v1
        pkg@1.2.3
        @media (min-width: 768px)
        user@host:~$ ls
        INSERT INTO t VALUES (1, 2, 3)
        0b1010_1010
        1_000_000
        line 1204, column 17
        for (i = 0; i < 1000; i++)
        [[:digit:]]
        error E1101
        ISO 8601
        RFC 9110
        utf-8
        x86_64
    """,
    "words": """
        He was born to win.
        She phoned twice.
        The card game lasted an hour.
        An address was missing.
        My birthday party is soon.
        Call me Ishmael.
        The key to success
        token limits are low
        Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz
        antidisestablishmentarianism
        pneumonoultramicroscopicsilicovolcanoconiosis
        password reset is broken
        the passport office
        COVID-19
        Boeing 747
        Apollo 11
        Route 66
        Windows 95
        iPhone 15
        Chapter 12
        Psalm 23:4
        Article 5
        Beethoven's 9th
        Catch-22
        F-16
        Formula 1
        U2
        MP3
        H2O
        CamelCaseIdentifierNames
        a_long_snake_case_identifier_name
        kebab-case-name-of-a-thing
        llama-3.1-70b-instruct
        gpt-4o-2024-08-06
        claude-sonnet-4-5-20250929
    """,
    "things": """
        ISBN 978-3-16-148410-0
        DOI 10.1000/182
        arXiv:1706.03762
        flight BA 2490
        gate B42
        room 1204
        Bus 100
        seat 12A
        page 1,024
        bolt M8x40
        DIN 476
        EN 60601-1
        part 7 of 12
        won 3-2 (1-1)
        score 21-19, 18-21, 21-17
        50-50
        24/7
        9/11
        1984 by Orwell
        a 1:1 meeting
        Level 80
        model T-1000
        size 42
        12 eggs, 500 g flour, 3 dl milk
        lottery 4 8 15 16 23 42
        temperature 36.6, pulse 72
        odds 7:2
        7 of 9
        EAN 4006381333931
        pi to 10 digits: 3.1415926535
        interest 4.25 % for 360 months
        zip 10115 Berlin
        10 Downing Street
        grid 120, 450
        3, 5, 7, 11, 13, 17, 19, 23, 29
        ratio 1.618
        coordinates of a pixel: 640, 480
        mean 12.34, sd 5.67
        step 100200300
        A 12.5, B 33.7
        from 1914 to 1918
        grades 1.3, 2.7, 1.0
        Fibonacci 610 987 1597 2584
    """,
    "near labels": """
        Lucas numbers 1364 2207 3571 5778
        pip install foo@latest
        born in the USA in spring
        mobile 5G
        phone 12 Pro Max
        id 7
        the password is required
        passport control at 10:30
        session 12
        key value pairs
        at latitude 52
        born of 12 mothers
        token count 128000
        mobile data 500 MB
        tel aviv 2024
        user@example
        a tax of 19.00 percent
        secret agent 007
        PAN 3 MAP
        RG 500 guitar
        born again 2
    """,
}
